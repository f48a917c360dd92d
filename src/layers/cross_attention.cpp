#include <cmath>

#include "layers/attention.h"

namespace mindpipe {

CrossAttention::CrossAttention(const LayerContext& context, Unit& unit, const std::string& name,
                               const std::string& path, const AttentionSpec& spec)
    : context_(context),
      spec_(spec),
      heads_(spec.heads / context.tensor.logical()),
      purpose_(purpose_of(path + ".attention_dropout")),
      query_(context, unit,
             {name + ".q",
              {{name + ".q", spec.heads * spec.head_width}},
              spec.width,
              Split::out,
              spec.bias,
              spec.deviation}),
      key_value_(context, unit,
                 {name + ".kv",
                  {{name + ".k", spec.heads * spec.head_width}, {name + ".v", spec.heads * spec.head_width}},
                  spec.width,
                  Split::out,
                  spec.bias,
                  spec.deviation}),
      output_(context, unit,
              {name + ".output",
               {{name + ".output", spec.width}},
               spec.heads * spec.head_width,
               Split::in,
               false,
               spec.output_deviation}) {}

AttentionParameters CrossAttention::parameters(std::int64_t queries, std::int64_t keys, int shard,
                                               const Tape& tape) const {
  return {.queries = queries,
          .keys = keys,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(spec_.head_width))),
          .key_lengths = tape.batch.source_lengths,
          .dropout = dropout_at(context_, spec_.dropout, purpose_, tape),
          .head_offset = static_cast<std::int64_t>(context_.tensor.first_shard() + shard) * heads_};
}

Tensor CrossAttention::forward(const Tensor& x, const Boundary& in, Tape& tape) {
  const Tensor whole = enter(context_, x, tape), memory = enter(context_, in.encoder_output, tape);
  const std::int64_t samples = whole.shape[0], rows = whole.shape[1], keys = memory.shape[1];
  const int shards = context_.tensor.local_shards();
  const Tensor q = query_.forward(whole, tape), kv = key_value_.forward(memory, tape);
  const Tensor log_sum =
      tape.keep({shards, samples, heads_, rows}, context_.dtype == DType::f64 ? DType::f64 : DType::f32);
  const Tensor out = tape.keep(q.shape, context_.dtype);
  for (int s = 0; s < shards; ++s) {
    const Shape shape{samples, rows, heads_, spec_.head_width};
    const Tensor pair = kv.at(s).reshaped({samples, keys, 2 * heads_, spec_.head_width});
    context_.backend.attention({.parameters = parameters(rows, keys, s, tape),
                                .q = {q.at(s).reshaped(shape), 0, heads_},
                                .k = {pair, 0, heads_},
                                .v = {pair, heads_, heads_},
                                .log_sum = log_sum.at(s),
                                .out = out.at(s).reshaped(shape)});
  }
  tape.save(q);
  tape.save(kv);
  tape.save(log_sum);
  tape.save(out);
  return leave(context_, output_.forward(out, tape), tape);
}

Tensor CrossAttention::backward(const Tensor& dy, const Boundary& dboundary, Tape& tape) {
  const Tensor dout = output_.backward(enter_gradient(context_, dy, tape), tape);
  const Tensor out = tape.restore(), log_sum = tape.restore(), kv = tape.restore(), q = tape.restore();
  const std::int64_t samples = q.shape[1], rows = q.shape[2], keys = kv.shape[2];
  const Tensor dq = tape.scratch(q.shape, q.dtype), dkv = tape.scratch(kv.shape, kv.dtype);
  for (int s = 0; s < context_.tensor.local_shards(); ++s) {
    const Shape shape{samples, rows, heads_, spec_.head_width},
        pair_shape{samples, keys, 2 * heads_, spec_.head_width};
    const Tensor pair = kv.at(s).reshaped(pair_shape), dpair = dkv.at(s).reshaped(pair_shape);
    context_.backend.attention_backward({.parameters = parameters(rows, keys, s, tape),
                                         .q = {q.at(s).reshaped(shape), 0, heads_},
                                         .k = {pair, 0, heads_},
                                         .v = {pair, heads_, heads_},
                                         .log_sum = log_sum.at(s),
                                         .out = out.at(s).reshaped(shape),
                                         .dout = dout.at(s).reshaped(shape),
                                         .dq = {dq.at(s).reshaped(shape), 0, heads_},
                                         .dk = {dpair, 0, heads_},
                                         .dv = {dpair, heads_, heads_}});
  }
  const Tensor dmemory = leave(context_, key_value_.backward(dkv, tape), tape);
  context_.backend.accumulate({dmemory, dboundary.encoder_output});
  return leave(context_, query_.backward(dq, tape), tape);
}

}  // namespace mindpipe
