#pragma once
#include "layers/layer.h"

namespace mindpipe {

struct EmbeddingSpec {
  std::int64_t vocabulary = 0, width = 0;
  std::int64_t positions = 0;  ///< rows of a learned position table; 0: none
  double dropout = 0, deviation = 0.02;
  std::string_view field = field::tokens;  ///< of the batch: the ids that it reads
  int uses = 1, use = 0;                   ///< of the table, when others share it
};

/// The vocabulary is cut by rows over the shards; padded up so that every shard has the same multiple of 64.
std::int64_t padded_vocabulary(std::int64_t vocabulary, int logical_shards);
/// A table of tokens: one parameter of the unit `table`, found again by name where it is shared.
Param token_table(Unit& table, const LayerContext& context, std::int64_t vocabulary, std::int64_t width,
                  double deviation, int uses, int use, const std::string& name = "embedding");

/// Token ids to activations: the sum of each shard's rows, plus learned positions, plus dropout.
class Embedding final : public Layer {
 public:
  Embedding(const LayerContext& context, Unit& table, Unit& positions, const std::string& path,
            const EmbeddingSpec& spec);
  std::vector<std::string_view> reads() const override { return {spec_.field}; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  const Tensor& tokens(const Tape& tape) const { return tape.batch.fields.at(spec_.field); }
  std::int64_t first_row(int shard) const;

  LayerContext context_;
  EmbeddingSpec spec_;
  std::uint64_t purpose_;
  Param table_, positions_;
};

}  // namespace mindpipe
