#include "layers/attention.h"

#include <cmath>

namespace mindpipe {

LinearSpec to_heads(const AttentionSpec& spec, std::vector<Piece> pieces) {
  for (Piece& piece : pieces) piece.rows *= spec.head_width;
  return {std::move(pieces), spec.width, Split::out, spec.bias, spec.deviation};
}

LinearSpec from_heads(const AttentionSpec& spec, const std::string& name) {
  return branch_output(name, spec.heads * spec.head_width, spec.width, spec.output_deviation);
}

Attention::Attention(const LayerContext& context, const std::string& path, const AttentionSpec& spec)
    : context_(context),
      spec_(spec),
      heads_(spec.heads / context.tensor.logical()),
      purpose_(purpose_of(path + ".attention_dropout")) {
  if (spec.rotary && spec.frequencies.empty()) spec_.frequencies = rotary_frequencies(10000, spec.head_width);
}

AttentionParameters Attention::parameters(std::int64_t queries, std::int64_t keys, int shard,
                                          const Tape& tape) const {
  return {.queries = queries,
          .keys = keys,
          .causal = spec_.causal,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(spec_.head_width))),
          .key_lengths = spec_.key_lengths.empty() ? Tensor{} : tape.batch.fields.at(spec_.key_lengths),
          .dropout = dropout_at(context_, spec_.dropout, purpose_, tape),
          .head_offset = static_cast<std::int64_t>(context_.tensor.first_shard() + shard) * heads_};
}

Tensor Attention::keep_log_sum(std::int64_t samples, std::int64_t rows, Tape& tape) const {
  return tape.keep({context_.tensor.local_shards(), samples, heads_, rows},
                   context_.dtype == DType::f64 ? DType::f64 : DType::f32);
}

Tensor Attention::gradient_of_heads(const Tensor& heads, Tape& tape) const {
  const Tensor gradient = tape.scratch(heads.shape, heads.dtype);
  if (keys_of(heads.shape[2]) < heads.shape[2]) context_.backend.fill({gradient, 0});
  return gradient;
}

}  // namespace mindpipe
