#pragma once
#include "layers/layer.h"

namespace mindpipe {

struct PatchSpec {
  PictureShape picture;
  std::int64_t width = 0;
  double dropout = 0, deviation = 0.02;
};

/// Pictures to activations: a token for the class in row 0, behind it a product of each patch, to
/// all of them learned positions. Rows are padded with zeros up to a multiple of the logical tensor shards;
/// what is added to padding learns nothing. The product is undivided: every tensor rank computes it, and its
/// gradient, alike.
class PatchEmbedding final : public Layer {
 public:
  PatchEmbedding(const LayerContext& context, Unit& unit, const std::string& path, const PatchSpec& spec);
  /// Rows of a sample: the class token's, those of patches, and padding.
  static std::int64_t padded_rows(const PictureShape& picture, int logical_shards);
  std::vector<std::string_view> reads() const override { return {field::picture}; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  /// Rows that are no padding.
  std::int64_t rows() const { return spec_.picture.patches() + 1; }
  /// Numbers of the patches, [samples rows, patch size], zeros where there is no patch.
  Tensor patches(Tape& tape) const;
  /// The rows of one sample within a part of the sequence that are no padding.
  std::int64_t rows_under(const SequencePart& sequence) const;
  /// What is added to each row of a sample: the class token or the product's bias, and the position.
  Tensor added_rows(const SequencePart& sequence, Tape& tape) const;
  /// Adds to the gradients of what added_rows() consists of; dy [samples, rows of the part, width].
  void add_row_gradients(const Tensor& dy, const SequencePart& sequence, Tape& tape);

  LayerContext context_;
  PatchSpec spec_;
  std::uint64_t purpose_;
  Param weight_, bias_, class_, positions_;
};

}  // namespace mindpipe
