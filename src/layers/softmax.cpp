#include "layers/softmax.h"

#include <algorithm>
#include <bit>

#include "layers/embedding.h"

namespace mindpipe {

namespace {

/// A power of two of rows of `bytes` each that are at most `most` together, and 8,192 or fewer.
std::int64_t rows_within(std::int64_t most, std::int64_t bytes) {
  constexpr std::int64_t most_tokens = 8192;
  const auto fitting = static_cast<std::uint64_t>(most / bytes);
  return std::min(static_cast<std::int64_t>(std::bit_floor(fitting)), most_tokens);
}

}  // namespace

std::int64_t token_chunk(bool wants_many_rows, std::int64_t vocabulary) {
  if (!wants_many_rows) return usual_token_chunk;
  // A GPU is filled by products of many rows.
  constexpr std::int64_t most_bytes = std::int64_t{512} << 20, least_tokens = 256;
  return std::max(least_tokens, rows_within(most_bytes, std::int64_t{4} * vocabulary));
}

std::int64_t gradient_chunk(bool wants_many_rows, std::int64_t vocabulary, DType dtype) {
  // With every chunk the table's whole gradient is read and written.
  constexpr std::int64_t most_bytes = std::int64_t{2} << 30;
  const std::int64_t logits = token_chunk(wants_many_rows, vocabulary);
  if (!wants_many_rows) return logits;
  return std::max(logits, rows_within(most_bytes, static_cast<std::int64_t>(bytes_of(dtype)) * vocabulary));
}

Softmax::Softmax(const LayerContext& context, Unit& table, Unit& unit, const SoftmaxSpec& spec)
    : context_(context),
      spec_(spec),
      token_chunk_(token_chunk(context.wants_many_rows, spec.vocabulary)),
      gradient_chunk_(gradient_chunk(context.wants_many_rows, spec.vocabulary, context.dtype)),
      table_(token_table(table, context, spec.vocabulary, spec.width, spec.deviation, spec.uses, spec.use,
                         spec.table, -1, true)) {
  if (!spec.bias) return;
  const std::int64_t padded = padded_vocabulary(spec.vocabulary, context.tensor.logical());
  ParamSpec bias{
      {{spec.table + ".bias", padded, padded - spec.vocabulary}}, 0, Split::out, Form::whole, {}, false};
  bias.constant = spec.constant_bias;
  bias_ = unit.add(bias);
}

std::int64_t Softmax::shard_rows() const {
  return padded_vocabulary(spec_.vocabulary, context_.tensor.logical()) / context_.tensor.logical();
}

std::int64_t Softmax::valid(int shard) const {
  return std::clamp<std::int64_t>(spec_.vocabulary - first_column(shard), 0, shard_rows());
}

void Softmax::multiply(const Tensor& x, int shard, const Tensor& logits) {
  context_.backend.linear(
      {.x = x, .w = table_.value(shard), .bias = bias_ ? bias_.value(shard) : Tensor{}, .y = logits});
}

Softmax::Sums Softmax::chunk_sums(const Tensor& x, const Tensor& targets, const Tensor& losses,
                                  const Tensor& logits, Tape& tape) {
  const std::int64_t n = x.shape[0];
  const int shards = context_.tensor.local_shards();
  Sums c;
  c.logits = logits;
  const Tensor maxima = tape.scratch({shards, n}, exact()), parts = tape.scratch({shards, 3, n}, exact());
  for (int s = 0; s < shards; ++s) {
    multiply(x, s, c.logits.at(s));
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

void Softmax::find_ranks(const Sums& sums, const Tensor& targets, const Tensor& ranks, Tape& tape) {
  const int shards = context_.tensor.local_shards();
  const bool is_split = context_.tensor.logical() > 1;
  const Shape shape{shards, ranks.count()};
  const Tensor parts = is_split ? tape.scratch(shape, exact()) : ranks.reshaped(shape);
  for (int s = 0; s < shards; ++s)
    context_.backend.target_rank(
        {sums.logits.at(s), valid(s), first_column(s), targets, sums.of_target, parts.at(s)});
  if (is_split) context_.tensor.sum(parts, ranks);
}

void Softmax::evaluate(const Tensor& x, Tape& tape) {
  const Tensor& whole = tape.batch.fields.at(field::targets);
  const std::int64_t n = x.shape[0];
  const Tensor targets = whole.reshaped({n}), losses = tape.losses.reshaped({n}),
               ranks = tape.hits ? tape.scratch({n}, exact()) : Tensor{};
  for (std::int64_t first = 0; first < n; first += token_chunk_) {
    Tape::Scope chunk(tape);
    const std::int64_t rows = std::min(token_chunk_, n - first);
    const Tensor chunk_targets = targets.range(first, rows);
    const Tensor logits = tape.scratch({context_.tensor.local_shards(), rows, shard_rows()}, exact());
    const Sums sums =
        chunk_sums(x.row_range(first, rows), chunk_targets, losses.range(first, rows), logits, tape);
    if (ranks) find_ranks(sums, chunk_targets, ranks.range(first, rows), tape);
  }
  if (ranks) context_.backend.count_hits({whole, ranks, tape.hits});
}

void Softmax::chunk_gradients(const Tensor& x, const Tensor& targets, const Tensor& losses,
                              std::int64_t first, const Tensor& dlogits, Tape& tape) {
  Tape::Scope scope(tape);
  const std::int64_t n = x.shape[0];
  const int shards = context_.tensor.local_shards();
  const bool in_place = dlogits.dtype == exact() && dlogits.shape[1] == n;
  const Tensor logits = in_place ? dlogits : tape.scratch({shards, n, shard_rows()}, exact());
  const auto gradient = [&](int s) { return dlogits.at(s).row_range(first, n); };
  if (context_.tensor.logical() == 1) {
    const Tensor maximum = tape.scratch({n}, exact()), sums = tape.scratch({3, n}, exact());
    multiply(x, 0, logits.at(0));
    context_.backend.softmax_cross_entropy({logits.at(0), valid(0), targets, tape.loss_factor,
                                            spec_.label_smoothing, spec_.vocabulary, maximum, sums, losses,
                                            gradient(0)});
    return;
  }
  const Sums c = chunk_sums(x, targets, losses, logits, tape);
  for (int s = 0; s < shards; ++s)
    context_.backend.cross_entropy_backward({c.logits.at(s), valid(s), first_column(s), targets, c.maximum,
                                             c.sums, tape.loss_factor, spec_.label_smoothing,
                                             spec_.vocabulary, gradient(s)});
}

void Softmax::backward(const Tensor& x, const Tensor& targets, const Tensor& losses, const Tensor& dx,
                       Tape& tape) {
  const std::int64_t n = x.shape[0];
  const int shards = context_.tensor.local_shards();
  for (std::int64_t first = 0; first < n; first += gradient_chunk_) {
    Tape::Scope chunk(tape);
    const std::int64_t rows = std::min(gradient_chunk_, n - first);
    const Tensor dlogits = tape.scratch({shards, rows, shard_rows()}, context_.dtype);
    for (std::int64_t at = 0; at < rows; at += token_chunk_) {
      const std::int64_t some = std::min(token_chunk_, rows - at), row = first + at;
      chunk_gradients(x.row_range(row, some), targets.range(row, some), losses.range(row, some), at, dlogits,
                      tape);
    }
    for (int s = 0; s < shards; ++s) {
      context_.backend.linear_backward_input(
          {.dy = dlogits.at(s), .w = table_.value(s), .dx = dx.at(s).row_range(first, rows)});
      context_.backend.linear_backward_weight(
          {dlogits.at(s), x.row_range(first, rows), table_.gradient(s), table_.takes_first_product(s)});
      if (bias_ && !spec_.constant_bias) context_.backend.bias_backward({dlogits.at(s), bias_.gradient(s)});
    }
  }
}

void Softmax::logits(const Tensor& x, const Tensor& logits) {
  for (int s = 0; s < context_.tensor.local_shards(); ++s) multiply(x, s, logits.at(s));
}

}  // namespace mindpipe
