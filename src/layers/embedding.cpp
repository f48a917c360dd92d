#include "layers/embedding.h"

namespace mindpipe {

std::int64_t padded_vocabulary(std::int64_t vocabulary, int logical_shards) {
  const std::int64_t unit = 64 * logical_shards;
  return (vocabulary + unit - 1) / unit * unit;
}

Param token_table(Unit& table, const LayerContext& context, std::int64_t vocabulary, std::int64_t width,
                  double deviation, int uses, int use, const std::string& name, std::int64_t zero_row,
                  bool of_products) {
  const std::int64_t padded = padded_vocabulary(vocabulary, context.tensor.logical());
  const Initial drawn{Initial::Kind::normal, deviation, zero_row};
  ParamSpec spec{
      {{name + ".weight", padded, padded - vocabulary}}, width, Split::out, Form::whole, drawn, true};
  spec.uses = uses;
  if (of_products) spec.of_products = 1u << use;
  return table.add(spec, use);
}

Embedding::Embedding(const LayerContext& context, Unit& table, Unit& positions, const std::string& path,
                     const EmbeddingSpec& spec)
    : context_(context), spec_(spec), purpose_(purpose_of(path + ".dropout")) {
  table_ = token_table(table, context, spec.vocabulary, spec.width, spec.deviation, spec.uses, spec.use,
                       "embedding", spec.padding);
  const Initial drawn{Initial::Kind::normal, spec.deviation};
  const ParamSpec rows{
      {{"positions.weight", spec.positions}}, spec.width, Split::none, Form::positions, drawn, true};
  if (spec.positions > 0) positions_ = positions.add(rows);
  // Every tensor rank sees the whole gradient anyway, for the table, and adds it up alike.
  const ParamSpec types{{{"types.weight", spec.types}}, spec.width, Split::none, Form::whole, drawn, true};
  if (spec.types > 0) types_ = positions.add(types);
  if (spec.norm)
    norm_.emplace(context, positions, "norm", spec.norm->kind, spec.width, spec.norm->epsilon,
                  spec.norm->offset);
}

std::int64_t Embedding::first_row(int shard) const {
  const int shards = context_.tensor.logical();
  return (context_.tensor.first_shard() + shard) * (padded_vocabulary(spec_.vocabulary, shards) / shards);
}

Tensor Embedding::find_rows(const Tensor& ids, const Tensor& to, Tape& tape) {
  const std::int64_t samples = ids.shape[0], rows = ids.shape[1], n = samples * rows;
  const int shards = context_.tensor.local_shards();
  // A table alone is whole, and its rows are the answer; otherwise each shard gives its rows and zeros.
  const bool alone = context_.tensor.logical() == 1;
  const Tensor found = alone ? to.reshaped({1, samples, rows, spec_.width})
                             : tape.scratch({shards, samples, rows, spec_.width}, context_.dtype);
  for (int s = 0; s < shards; ++s)
    context_.backend.embedding({.tokens = ids.reshaped({n}),
                                .table = table_.value(s),
                                .first_row = first_row(s),
                                .y = found.at(s).reshaped({n, spec_.width})});
  return alone ? to : leave(context_, found, tape);
}

Tensor Embedding::types_of(const SequencePart& sequence, Tape& tape) const {
  const Tensor whole = spec_.typed ? tape.batch.fields.at(field::types) : Tensor{};
  if (whole && sequence.rows == sequence.whole) return whole;
  const Tensor part = tape.scratch({sequence.samples, sequence.rows}, DType::i32);
  if (!whole) context_.backend.fill({part, 0});
  for (std::int64_t s = 0; whole && s < sequence.samples; ++s)
    context_.backend.copy(whole.at(s).range(sequence.first, sequence.rows), part.at(s));
  return part;
}

Tensor Embedding::add_types_and_positions(Tensor x, const Tensor& sum, Tape& tape) {
  const SequencePart sequence = sequence_part_of(context_, x);
  const std::int64_t n = sequence.samples * sequence.rows, first = spec_.first_position + tape.position;
  if (types_) {
    const Tensor rows = tape.scratch(x.shape, x.dtype);
    context_.backend.embedding({.tokens = types_of(sequence, tape).reshaped({n}),
                                .table = types_.value(),
                                .y = rows.reshaped({n, spec_.width})});
    context_.backend.add({x, rows, sum});
    x = sum;
  }
  if (positions_) {
    context_.backend.add_positions(
        {.x = x, .positions = positions_.value(), .sequence = sequence, .first_position = first, .y = sum});
    x = sum;
  }
  if (spec_.sinusoids) {
    context_.backend.add_sinusoids(
        {.x = x, .sequence = sequence, .first_position = first, .form = *spec_.sinusoids, .y = sum});
    x = sum;
  }
  return x;
}

Boundary Embedding::forward(Boundary in, Tape& tape) {
  const Tensor ids = tokens(tape);
  const std::int64_t samples = ids.shape[0], rows = ids.shape[1];
  const std::int64_t local_rows = context_.sequence_parallel ? rows / context_.tensor.size() : rows;
  const Tensor y = tape.output({samples, local_rows, spec_.width}, context_.dtype);
  Tape::Scope scope(tape);
  const Tensor sum = norm_ ? tape.keep(y.shape, y.dtype) : y;
  Tensor x = find_rows(ids, sum, tape);
  if (spec_.factor != 1) {
    context_.backend.scale({x, spec_.factor, sum});
    x = sum;
  }
  x = add_types_and_positions(x, sum, tape);
  if (norm_) {
    if (x.data != sum.data) context_.backend.copy(x, sum);
    x = norm_->forward(sum, tape, y);
  }
  const Dropout dropout = dropout_at(context_, spec_.dropout, purpose_, tape);
  if (dropout.probability > 0) {
    context_.backend.dropout({x, dropout, sequence_part_of(context_, y), y});
    x = y;
  }
  if (x.data != y.data) context_.backend.copy(x, y);
  return {y, in.encoder_output};
}

Boundary Embedding::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  const Tensor dy = dout.activation, ids = tokens(tape);
  const SequencePart sequence = sequence_part_of(context_, dy);
  const Dropout dropout = dropout_at(context_, spec_.dropout, purpose_, tape);
  if (dropout.probability > 0) context_.backend.dropout({dy, dropout, sequence, dy});
  Tensor dsum = dy;
  if (norm_) norm_->backward(dy, {}, dsum = tape.scratch(dy.shape, dy.dtype), tape);
  if (positions_)
    context_.backend.positions_backward({.dy = dsum,
                                         .sequence = sequence,
                                         .first_position = spec_.first_position,
                                         .dpositions = positions_.gradient()});
  const Tensor whole = enter_gradient(context_, dsum, tape);
  const std::int64_t n = whole.shape[0] * whole.shape[1];
  const Tensor rows = whole.reshaped({n, spec_.width});
  if (types_)
    context_.backend.embedding_backward(
        {.tokens = types_of({whole.shape[0], whole.shape[1], 0, whole.shape[1]}, tape).reshaped({n}),
         .dy = rows,
         .dtable = types_.gradient()});
  if (spec_.factor != 1) context_.backend.scale({rows, spec_.factor, rows});
  for (int s = 0; s < context_.tensor.local_shards(); ++s)
    context_.backend.embedding_backward({.tokens = ids.reshaped({n}),
                                         .dy = rows,
                                         .first_row = first_row(s),
                                         .dtable = table_.gradient(s),
                                         .dropped = spec_.padding});
  return {{}, dout.encoder_output};
}

}  // namespace mindpipe
