#include "layers/attention.h"

namespace mindpipe {

SelfAttention::SelfAttention(const LayerContext& context, Unit& unit, const std::string& name,
                             const std::string& path, const AttentionSpec& spec)
    : Attention(context, path, spec),
      key_value_heads_(spec.key_value_heads / context.tensor.logical()),
      qkv_(context, unit,
           to_heads(spec, {{name + ".q", spec.heads},
                           {name + ".k", spec.key_value_heads},
                           {name + ".v", spec.key_value_heads}})),
      output_(context, unit, from_heads(spec, name)) {
  if (spec.head_norms)
    head_norms_.emplace(context, unit, name,
                        HeadNorms::Spec{heads_, key_value_heads_, spec.head_width, spec.norm_epsilon});
}

Shape SelfAttention::cache_shape(std::int64_t samples) const {
  return {context_.tensor.local_shards(), samples, spec_.cache_rows, 2 * key_value_heads_ * spec_.head_width};
}

std::size_t SelfAttention::cache_bytes(std::int64_t samples) const {
  return bytes_for(cache_shape(samples), context_.dtype);
}

Tensor SelfAttention::extend_cache(const Tensor& qkv, int shard, Tape& tape) {
  const std::int64_t samples = qkv.shape[0], rows = qkv.shape[1],
                     width = 2 * key_value_heads_ * spec_.head_width, skip = heads_ * spec_.head_width;
  const Tensor cache = tape.caches.of(this, cache_shape(samples), qkv.dtype).at(shard);
  const std::size_t element = bytes_of(qkv.dtype);
  for (std::int64_t i = 0; i < samples * rows; ++i) {
    const std::int64_t to = (i / rows) * spec_.cache_rows + tape.position + i % rows;
    context_.backend.copy({qkv.as<std::byte>() + (i * (skip + width) + skip) * element, {width}, qkv.dtype},
                          {cache.as<std::byte>() + to * width * element, {width}, qkv.dtype});
  }
  return cache.reshaped({samples, spec_.cache_rows, 2 * key_value_heads_, spec_.head_width});
}

Tensor SelfAttention::forward(const Tensor& x, const Boundary&, Tape& tape) {
  const Tensor whole = enter(context_, x, tape);
  const std::int64_t samples = whole.shape[0], rows = whole.shape[1];
  const int shards = context_.tensor.local_shards(), all = heads_ + 2 * key_value_heads_;
  const Tensor qkv = qkv_.forward(whole, tape);
  if (head_norms_) head_norms_->forward(qkv, tape);
  const Tensor log_sum = keep_log_sum(samples, rows, tape);
  const Tensor out = tape.keep({shards, samples, rows, heads_ * spec_.head_width}, context_.dtype);
  for (int s = 0; s < shards; ++s) {
    const Tensor heads = qkv.at(s).reshaped({samples, rows, all, spec_.head_width});
    if (spec_.rotary)
      context_.backend.rotary({.heads = {heads, 0, heads_ + key_value_heads_},
                               .frequencies = spec_.frequencies,
                               .first_position = tape.position});
    Heads k{heads, heads_, key_value_heads_}, v{heads, heads_ + key_value_heads_, key_value_heads_};
    std::int64_t keys = keys_of(rows);
    if (tape.mode == Tape::Mode::generate) {
      const Tensor cache = extend_cache(qkv.at(s), s, tape);
      k = {cache, 0, key_value_heads_};
      v = {cache, key_value_heads_, key_value_heads_};
      keys = tape.position + rows;
    }
    context_.backend.attention({.parameters = parameters(rows, keys, s, tape),
                                .q = {heads, 0, heads_},
                                .k = k,
                                .v = v,
                                .log_sum = log_sum.at(s),
                                .out = out.at(s).reshaped({samples, rows, heads_, spec_.head_width})});
  }
  tape.save(qkv);
  tape.save(log_sum);
  tape.save(out);
  return leave(context_, output_.forward(out, tape), tape);
}

Tensor SelfAttention::backward(const Tensor& dy, const Boundary&, Tape& tape) {
  const Tensor dout = output_.backward(enter_gradient(context_, dy, tape), tape);
  const Tensor out = tape.restore(), log_sum = tape.restore(), qkv = tape.restore();
  const std::int64_t samples = qkv.shape[1], rows = qkv.shape[2];
  const int all = heads_ + 2 * key_value_heads_;
  const Tensor dqkv = gradient_of_heads(qkv, tape);
  for (int s = 0; s < context_.tensor.local_shards(); ++s) {
    const Shape shape{samples, rows, all, spec_.head_width},
        out_shape{samples, rows, heads_, spec_.head_width};
    const Tensor heads = qkv.at(s).reshaped(shape), dheads = dqkv.at(s).reshaped(shape);
    const int k = heads_, v = heads_ + key_value_heads_;
    context_.backend.attention_backward({.parameters = parameters(rows, keys_of(rows), s, tape),
                                         .q = {heads, 0, heads_},
                                         .k = {heads, k, key_value_heads_},
                                         .v = {heads, v, key_value_heads_},
                                         .log_sum = log_sum.at(s),
                                         .out = out.at(s).reshaped(out_shape),
                                         .dout = dout.at(s).reshaped(out_shape),
                                         .dq = {dheads, 0, heads_},
                                         .dk = {dheads, k, key_value_heads_},
                                         .dv = {dheads, v, key_value_heads_}});
    if (spec_.rotary)
      context_.backend.rotary({.heads = {dheads, 0, v}, .frequencies = spec_.frequencies, .inverse = true});
  }
  if (head_norms_) head_norms_->backward(dqkv, tape);
  tape.gives_up(qkv);
  return leave(context_, qkv_.backward(dqkv, tape), tape);
}

}  // namespace mindpipe
