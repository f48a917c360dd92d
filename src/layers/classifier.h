#pragma once
#include "layers/norm.h"

namespace mindpipe {

struct ClassifierSpec {
  std::int64_t vocabulary = 0, width = 0;
  double deviation = 0.02;
  int uses = 1, use = 0;  ///< of the table, when an embedding shares it
  std::string table = "embedding";
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;
  bool norm_offset = true;
  double label_smoothing = 0;  ///< probability spread over the other words
};

/// Tokens whose logits exist at once: a function of the kind of device and of the vocabulary, so a constant
/// of a run. Gradients of the table are added chunk by chunk.
inline constexpr std::int64_t usual_token_chunk = 256;
std::int64_t token_chunk(bool wants_many_rows, std::int64_t vocabulary);

/// The end of a language model: final norm, product with the table, softmax and cross-entropy, in chunks of
/// tokens so that the logits of a micro-batch never exist at once. Forward only norms; backward computes
/// losses and gradients together, chunk by chunk, so that no product is done twice. When nothing is saved,
/// forward computes the losses (evaluate) or the last position's logits (generate).
class Classifier final : public Layer {
 public:
  Classifier(const LayerContext& context, Unit& table, Unit& unit, const ClassifierSpec& spec);
  Norm* opening_norm() override { return &norm_; }
  std::vector<std::string_view> reads() const override { return {field::targets}; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  /// What the softmax of one chunk needs beside its logits.
  struct Sums {
    Tensor logits, maximum, sums, of_target, total;
  };
  /// Writes the losses of a chunk too.
  Sums chunk_sums(const Tensor& x, const Tensor& targets, const Tensor& losses, Tape& tape);
  std::int64_t shard_rows() const;
  std::int64_t first_column(int shard) const {
    return (context_.tensor.first_shard() + shard) * shard_rows();
  }
  std::int64_t valid(int shard) const;
  void last_logits(const Tensor& normed, Tape& tape);

  LayerContext context_;
  ClassifierSpec spec_;
  std::int64_t token_chunk_;
  Norm norm_;
  Param table_;
};

}  // namespace mindpipe
