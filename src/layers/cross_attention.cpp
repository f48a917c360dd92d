#include "layers/attention.h"

namespace mindpipe {

CrossAttention::CrossAttention(const LayerContext& context, Unit& unit, const std::string& name,
                               const std::string& path, const AttentionSpec& spec)
    : Attention(context, path, spec),
      query_(context, unit, to_heads(spec, {{name + ".q", spec.heads}})),
      key_value_(context, unit, to_heads(spec, {{name + ".k", spec.heads}, {name + ".v", spec.heads}})),
      output_(context, unit, from_heads(spec, name)) {
  spec_.causal = false;
}

Tensor CrossAttention::forward(const Tensor& x, const Boundary& in, Tape& tape) {
  const Tensor whole = enter(context_, x, tape), encoded = enter(context_, in.encoder_output, tape);
  const std::int64_t samples = whole.shape[0], rows = whole.shape[1], keys = encoded.shape[1];
  const Tensor q = query_.forward(whole, tape), kv = key_value_.forward(encoded, tape);
  const Tensor log_sum = keep_log_sum(samples, rows, tape);
  const Tensor out = tape.keep(q.shape, context_.dtype);
  for (int s = 0; s < context_.tensor.local_shards(); ++s) {
    const Shape shape{samples, rows, heads_, spec_.head_width};
    const Tensor pair = kv.at(s).reshaped({samples, keys, 2 * heads_, spec_.head_width});
    context_.backend.attention({.parameters = parameters(rows, keys_of(keys), s, tape),
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
  const Tensor dq = tape.scratch(q.shape, q.dtype), dkv = gradient_of_heads(kv, tape);
  for (int s = 0; s < context_.tensor.local_shards(); ++s) {
    const Shape shape{samples, rows, heads_, spec_.head_width},
        pair_shape{samples, keys, 2 * heads_, spec_.head_width};
    const Tensor pair = kv.at(s).reshaped(pair_shape), dpair = dkv.at(s).reshaped(pair_shape);
    context_.backend.attention_backward({.parameters = parameters(rows, keys_of(keys), s, tape),
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
  tape.gives_up(kv);
  tape.gives_up(q);
  const Tensor dencoded = leave(context_, key_value_.backward(dkv, tape), tape);
  context_.backend.accumulate({dencoded, dboundary.encoder_output});
  return leave(context_, query_.backward(dq, tape), tape);
}

}  // namespace mindpipe
