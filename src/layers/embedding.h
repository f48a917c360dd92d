#pragma once
#include <optional>

#include "layers/norm.h"

namespace mindpipe {

struct EmbeddingSpec {
  std::int64_t vocabulary = 0, width = 0;
  std::int64_t positions = 0;  ///< rows of a learned position table; 0: none
  double dropout = 0, deviation = 0.02;
  std::string_view field = field::tokens;  ///< the batch's field of ids
  int uses = 1, use = 0;                   ///< uses of the table, when others share it
  double factor = 1;                       ///< the rows of the table times this
  std::int64_t types = 0;                  ///< rows of a learned table of token types; 0: none
  bool typed = false;         ///< the batch says of which type a token is; else all are of the first
  std::int64_t padding = -1;  ///< a token whose row begins as zeros and learns nothing here; -1: none
  std::optional<Sinusoids> sinusoids = {};  ///< added where tokens stand, instead of a learned table
  std::int64_t first_position = 0;          ///< position of a sequence's first token, in either table
  std::optional<NormSpec> norm = {};        ///< behind the sum
};

/// The vocabulary is cut by rows over the shards; padded up so that every shard has the same multiple of 64.
std::int64_t padded_vocabulary(std::int64_t vocabulary, int logical_shards);
/// A table of tokens: one parameter of the unit `table`, found again by name where it is shared.
/// `of_products`: this use's gradient is products of whole shards (ParamSpec).
Param token_table(Unit& table, const LayerContext& context, std::int64_t vocabulary, std::int64_t width,
                  double deviation, int uses, int use, const std::string& name = "embedding",
                  std::int64_t zero_row = -1, bool of_products = false);

/// Token ids to activations: rows of the table times a factor, plus rows of token types, plus positions; then
/// the norm, if there is one, and dropout.
class Embedding final : public Layer {
 public:
  Embedding(const LayerContext& context, Unit& table, Unit& positions, const std::string& path,
            const EmbeddingSpec& spec);
  std::vector<std::string_view> reads() const override {
    return spec_.typed ? std::vector<std::string_view>{spec_.field, field::types}
                       : std::vector<std::string_view>{spec_.field};
  }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  const Tensor& tokens(const Tape& tape) const { return tape.batch.fields.at(spec_.field); }
  std::int64_t first_row(int shard) const;
  /// The rows of the table, found by shards and summed; they may lie in `to`.
  Tensor find_rows(const Tensor& ids, const Tensor& to, Tape& tape);
  /// Token types [samples, rows] of the rows of a part of the sequence.
  Tensor types_of(const SequencePart& sequence, Tape& tape) const;
  /// Adds to `x` what tells of each token's type and place; the sum lies in x or in `sum`.
  Tensor add_types_and_positions(Tensor x, const Tensor& sum, Tape& tape);

  LayerContext context_;
  EmbeddingSpec spec_;
  std::uint64_t purpose_;
  Param table_, types_, positions_;
  std::optional<Norm> norm_;
};

}  // namespace mindpipe
