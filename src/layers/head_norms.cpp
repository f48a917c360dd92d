#include "layers/head_norms.h"

namespace mindpipe {

HeadNorms::HeadNorms(const LayerContext& context, Unit& unit, const std::string& name, const Spec& spec)
    : context_(context), spec_(spec) {
  for (const int kind : {queries, keys})
    gains_[kind] =
        unit.add({{{name + (kind == queries ? ".q_norm.weight" : ".k_norm.weight"), spec.head_width}},
                  0,
                  Split::none,
                  Form::shards,
                  {Initial::Kind::one},
                  false});
}

Tensor HeadNorms::statistics_for(const Tensor& heads, Tape& tape) const {
  return tape.keep({heads.rows(), 2}, heads.dtype == DType::f64 ? DType::f64 : DType::f32);
}

void HeadNorms::put_back(const std::array<Tensor, 2>& normed, const Tensor& qkv, Tape& tape) const {
  const std::int64_t n = qkv.rows(), behind = first_column(keys) + heads(keys) * spec_.head_width;
  const Tensor values = tape.scratch({n, heads(keys) * spec_.head_width}, qkv.dtype);
  context_.backend.cut_columns({qkv, values, behind});
  for (const int kind : {queries, keys})
    context_.backend.pad_columns({.x = normed[kind].reshaped({n, heads(kind) * spec_.head_width}),
                                  .sum = kind == queries ? Tensor{} : qkv,
                                  .y = qkv,
                                  .first = first_column(kind)});
  context_.backend.pad_columns({.x = values, .sum = qkv, .y = qkv, .first = behind});
}

void HeadNorms::forward(const Tensor& qkv, Tape& tape) {
  for (int s = 0; s < context_.tensor.local_shards(); ++s) {
    const Tensor rows = qkv.at(s).reshaped({qkv.shape[1] * qkv.shape[2], width()});
    std::array<Tensor, 2> normed;
    for (const int kind : {queries, keys}) {
      const Tensor raw = tape.keep({rows.rows() * heads(kind), spec_.head_width}, qkv.dtype);
      context_.backend.cut_columns(
          {rows, raw.reshaped({rows.rows(), heads(kind) * spec_.head_width}), first_column(kind)});
      const Tensor statistics = statistics_for(raw, tape);
      normed[kind] = tape.scratch(raw.shape, raw.dtype);
      context_.backend.norm(
          {NormKind::rms, raw, gains_[kind].value(), {}, spec_.epsilon, statistics, normed[kind]});
      tape.save(raw);
      tape.save(statistics);
    }
    put_back(normed, rows, tape);
  }
}

void HeadNorms::backward(const Tensor& dqkv, Tape& tape) {
  for (int s = context_.tensor.local_shards(); s-- > 0;) {
    const Tensor rows = dqkv.at(s).reshaped({dqkv.shape[1] * dqkv.shape[2], width()});
    std::array<Tensor, 2> gradients;
    for (const int kind : {keys, queries}) {
      const Tensor statistics = tape.restore(), raw = tape.restore();
      const Tensor dy = tape.scratch(raw.shape, raw.dtype);
      context_.backend.cut_columns(
          {rows, dy.reshaped({rows.rows(), heads(kind) * spec_.head_width}), first_column(kind)});
      gradients[kind] = tape.scratch(raw.shape, raw.dtype);
      context_.backend.norm_backward({NormKind::rms,
                                      dy,
                                      raw,
                                      gains_[kind].value(),
                                      statistics,
                                      {},
                                      gradients[kind],
                                      gains_[kind].gradient(s)});
    }
    put_back(gradients, rows, tape);
  }
}

}  // namespace mindpipe
