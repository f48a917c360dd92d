#include "layers/classifier.h"

#include <algorithm>
#include <bit>

#include "layers/embedding.h"

namespace mindpipe {

std::int64_t token_chunk(bool wants_many_rows, std::int64_t vocabulary) {
  if (!wants_many_rows) return usual_token_chunk;
  // A GPU is filled by products of many rows, and with every chunk the table's whole gradient is read and
  // written.
  constexpr std::int64_t most_bytes_of_logits = std::int64_t{512} << 20, most_tokens = 8192;
  const auto fitting = static_cast<std::uint64_t>(most_bytes_of_logits / (std::int64_t{4} * vocabulary));
  return std::clamp(static_cast<std::int64_t>(std::bit_floor(fitting)), usual_token_chunk, most_tokens);
}

Classifier::Classifier(const LayerContext& context, Unit& table, Unit& unit, const ClassifierSpec& spec)
    : context_(context),
      spec_(spec),
      token_chunk_(token_chunk(context.wants_many_rows, spec.vocabulary)),
      norm_(context, unit, "final_norm", spec.norm, spec.width, spec.epsilon, spec.norm_offset),
      table_(token_table(table, context, spec.vocabulary, spec.width, spec.deviation, spec.uses, spec.use,
                         spec.table)) {}

std::int64_t Classifier::shard_rows() const {
  return padded_vocabulary(spec_.vocabulary, context_.tensor.logical()) / context_.tensor.logical();
}

std::int64_t Classifier::valid(int shard) const {
  return std::clamp<std::int64_t>(spec_.vocabulary - first_column(shard), 0, shard_rows());
}

Classifier::Sums Classifier::chunk_sums(const Tensor& x, const Tensor& targets, const Tensor& losses,
                                        Tape& tape) {
  const std::int64_t n = x.shape[0];
  const int shards = context_.tensor.local_shards();
  const DType exact = context_.dtype == DType::f64 ? DType::f64 : DType::f32;
  Sums c;
  c.logits = tape.scratch({shards, n, shard_rows()}, exact);
  const Tensor maxima = tape.scratch({shards, n}, exact), parts = tape.scratch({shards, 3, n}, exact);
  for (int s = 0; s < shards; ++s) {
    context_.backend.linear({.x = x, .w = table_.value(s), .y = c.logits.at(s)});
    context_.backend.row_maximum({c.logits.at(s), valid(s), maxima.at(s)});
  }
  c.maximum = maxima.at(0);
  if (context_.tensor.logical() > 1) context_.tensor.maximum(maxima, c.maximum);
  for (int s = 0; s < shards; ++s) {
    const Tensor p = parts.at(s);
    context_.backend.softmax_sums({.logits = c.logits.at(s),
                                   .valid = valid(s),
                                   .first_column = first_column(s),
                                   .targets = targets,
                                   .maximum = c.maximum,
                                   .sums = p.at(0),
                                   .of_target = p.at(1),
                                   .total = p.at(2)});
  }
  const Tensor total = parts.at(0);
  if (context_.tensor.logical() > 1) context_.tensor.sum(parts, total);
  c.sums = total.at(0);
  c.of_target = total.at(1);
  c.total = total.at(2);
  context_.backend.cross_entropy(
      {targets, c.maximum, c.sums, c.of_target, c.total, spec_.label_smoothing, spec_.vocabulary, losses});
  return c;
}

void Classifier::last_logits(const Tensor& normed, Tape& tape) {
  const std::int64_t samples = normed.shape[0], rows = normed.shape[1], width = spec_.width;
  const Tensor last = tape.scratch({samples, width}, normed.dtype);
  for (std::int64_t i = 0; i < samples; ++i)
    context_.backend.copy(normed.at(i).row_range(rows - 1, 1).reshaped({width}), last.at(i));
  for (int s = 0; s < context_.tensor.local_shards(); ++s)
    context_.backend.linear({.x = last, .w = table_.value(s), .y = tape.logits.at(s)});
}

Boundary Classifier::forward(Boundary in, Tape& tape) {
  if (tape.saves()) {
    tape.save(in.normed ? in.normed : norm_.forward(in.activation, tape));
    return in;
  }
  Tape::Scope scope(tape);
  const Tensor whole = enter(context_, norm_.forward(in.activation, tape), tape);
  if (tape.mode == Tape::Mode::generate) {
    last_logits(whole, tape);
    return in;
  }
  const std::int64_t n = whole.rows();
  const Tensor x = whole.reshaped({n, spec_.width}),
               targets = tape.batch.fields.at(field::targets).reshaped({n});
  for (std::int64_t first = 0; first < n; first += token_chunk_) {
    Tape::Scope chunk(tape);
    const std::int64_t rows = std::min(token_chunk_, n - first);
    chunk_sums(x.row_range(first, rows), targets.range(first, rows), tape.losses.range(first, rows), tape);
  }
  return in;
}

Boundary Classifier::backward(Boundary, Tape& tape) {
  const Tensor normed = tape.restore();
  const Tensor dx = tape.scratch(normed.shape, context_.dtype);
  Tape::Scope scope(tape);
  const Tensor whole = enter_gradient(context_, normed, tape);
  const std::int64_t n = whole.rows();
  const int shards = context_.tensor.local_shards();
  const Tensor x = whole.reshaped({n, spec_.width}),
               targets = tape.batch.fields.at(field::targets).reshaped({n});
  const Tensor dwhole = tape.scratch({shards, whole.shape[0], whole.shape[1], spec_.width}, context_.dtype);
  for (std::int64_t first = 0; first < n; first += token_chunk_) {
    Tape::Scope chunk(tape);
    const std::int64_t rows = std::min(token_chunk_, n - first);
    const Tensor x_chunk = x.row_range(first, rows), chunk_targets = targets.range(first, rows);
    const Sums c = chunk_sums(x_chunk, chunk_targets, tape.losses.range(first, rows), tape);
    for (int s = 0; s < shards; ++s) {
      const Tensor logits = c.logits.at(s), dlogits = logits.dtype == context_.dtype
                                                          ? logits
                                                          : tape.scratch(logits.shape, context_.dtype);
      context_.backend.cross_entropy_backward({logits, valid(s), first_column(s), chunk_targets, c.maximum,
                                               c.sums, tape.loss_factor, spec_.label_smoothing,
                                               spec_.vocabulary, dlogits});
      context_.backend.linear_backward_input(
          {.dy = dlogits,
           .w = table_.value(s),
           .dx = dwhole.at(s).reshaped({n, spec_.width}).row_range(first, rows)});
      context_.backend.linear_backward_weight({dlogits, x_chunk, table_.gradient(s)});
    }
  }
  norm_.backward(leave(context_, dwhole, tape), {}, dx, tape);
  return {dx, {}};
}

}  // namespace mindpipe
