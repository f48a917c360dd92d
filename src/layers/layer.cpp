#include "layers/layer.h"

namespace mindpipe {
namespace {

bool splits_sequence(const LayerContext& context) {
  return context.sequence_parallel && context.tensor.size() > 1;
}
Shape whole_shape(const LayerContext& context, const Tensor& x) {
  return {x.shape[0], x.shape[1] * context.tensor.size(), x.shape[2]};
}

}  // namespace

SequencePart sequence_part_of(const LayerContext& context, const Tensor& x) {
  const std::int64_t rows = x.shape[1];
  if (!context.sequence_parallel) return {x.shape[0], rows, 0, rows};
  return {x.shape[0], rows, rows * context.tensor.rank(), rows * context.tensor.size()};
}

Tensor enter(const LayerContext& context, const Tensor& x, Tape& tape) {
  if (!splits_sequence(context)) return x;
  const Tensor whole = tape.keep(whole_shape(context, x), x.dtype);
  context.tensor.gather(x, whole, x.shape[0]);
  return whole;
}

Tensor enter_gradient(const LayerContext& context, const Tensor& dy, Tape& tape) {
  if (!splits_sequence(context)) return dy;
  const Tensor whole = tape.scratch(whole_shape(context, dy), dy.dtype);
  context.tensor.gather(dy, whole, dy.shape[0]);
  return whole;
}

Tensor leave(const LayerContext& context, const Tensor& shards, Tape& tape) {
  const Shape whole{shards.shape[1], shards.shape[2], shards.shape[3]};
  if (splits_sequence(context)) {
    const Tensor part = tape.scratch({whole[0], whole[1] / context.tensor.size(), whole[2]}, shards.dtype);
    context.tensor.sum_scatter(shards, part, whole[0]);
    return part;
  }
  const Tensor total{shards.data, whole, shards.dtype};
  if (context.tensor.logical() > 1) context.tensor.sum(shards, total);
  return total;
}

void take_own_rows(const LayerContext& context, const Tensor& whole, const Tensor& own) {
  const SequencePart sequence = sequence_part_of(context, own);
  for (std::int64_t s = 0; s < sequence.samples; ++s)
    context.backend.copy(whole.at(s).row_range(sequence.first, sequence.rows), own.at(s));
}

Tensor own_rows(const LayerContext& context, const Tensor& whole, Tape& tape) {
  if (!splits_sequence(context)) return whole;
  const Tensor own =
      tape.scratch({whole.shape[0], whole.shape[1] / context.tensor.size(), whole.shape[2]}, whole.dtype);
  take_own_rows(context, whole, own);
  return own;
}

Dropout dropout_at(const LayerContext& context, double probability, std::uint64_t purpose, const Tape& tape) {
  if (!tape.trains()) probability = 0;
  return {static_cast<float>(probability),
          {context.seed, purpose, static_cast<std::uint32_t>(tape.batch.step),
           static_cast<std::uint32_t>(tape.batch.first_sample)}};
}

}  // namespace mindpipe
