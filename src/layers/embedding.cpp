#include "layers/embedding.h"

namespace mindpipe {

std::int64_t padded_vocabulary(std::int64_t vocabulary, int logical_shards) {
  const std::int64_t unit = 64 * logical_shards;
  return (vocabulary + unit - 1) / unit * unit;
}

Param token_table(Unit& table, const LayerContext& context, std::int64_t vocabulary, std::int64_t width,
                  double deviation, int uses, int use, const std::string& name) {
  const std::int64_t padded = padded_vocabulary(vocabulary, context.tensor.logical());
  const Initial drawn{Initial::Kind::normal, deviation};
  ParamSpec spec{
      {{name + ".weight", padded, padded - vocabulary}}, width, Split::out, Form::whole, drawn, true};
  spec.uses = uses;
  return table.add(spec, use);
}

Embedding::Embedding(const LayerContext& context, Unit& table, Unit& positions, const std::string& path,
                     const EmbeddingSpec& spec)
    : context_(context), spec_(spec), purpose_(purpose_of(path + ".dropout")) {
  table_ = token_table(table, context, spec.vocabulary, spec.width, spec.deviation, spec.uses, spec.use);
  const Initial drawn{Initial::Kind::normal, spec.deviation};
  const ParamSpec rows{
      {{"positions.weight", spec.positions}}, spec.width, Split::none, Form::positions, drawn, true};
  if (spec.positions > 0) positions_ = positions.add(rows);
}

std::int64_t Embedding::first_row(int shard) const {
  const int shards = context_.tensor.logical();
  return (context_.tensor.first_shard() + shard) * (padded_vocabulary(spec_.vocabulary, shards) / shards);
}

Boundary Embedding::forward(Boundary in, Tape& tape) {
  const Tensor ids = tokens(tape);
  const std::int64_t samples = ids.shape[0], rows = ids.shape[1], n = samples * rows;
  const int shards = context_.tensor.local_shards();
  const std::int64_t local_rows = context_.sequence_parallel ? rows / context_.tensor.size() : rows;
  const Tensor y = tape.output({samples, local_rows, spec_.width}, context_.dtype);
  Tape::Scope scope(tape);
  // A table alone is whole, and its rows are the answer; otherwise each shard gives its rows and zeros.
  const bool alone = context_.tensor.logical() == 1;
  const Tensor found = alone ? y.reshaped({1, samples, rows, spec_.width})
                             : tape.scratch({shards, samples, rows, spec_.width}, context_.dtype);
  for (int s = 0; s < shards; ++s)
    context_.backend.embedding({.tokens = ids.reshaped({n}),
                                .table = table_.value(s),
                                .first_row = first_row(s),
                                .y = found.at(s).reshaped({n, spec_.width})});
  const Tensor sum = alone ? y : leave(context_, found, tape);
  const Window window = window_of(context_, sum);
  Tensor x = sum;
  if (positions_) {
    context_.backend.add_positions(
        {.x = x, .positions = positions_.value(), .window = window, .first_position = tape.position, .y = y});
    x = y;
  }
  const Dropout dropout = dropout_at(context_, spec_.dropout, purpose_, tape);
  if (dropout.probability > 0) {
    context_.backend.dropout({x, dropout, window, y});
    x = y;
  }
  if (x.data != y.data) context_.backend.copy(x, y);
  return {y, in.encoder_output};
}

Boundary Embedding::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  const Tensor dy = dout.activation, ids = tokens(tape);
  const Window window = window_of(context_, dy);
  const Dropout dropout = dropout_at(context_, spec_.dropout, purpose_, tape);
  if (dropout.probability > 0) context_.backend.dropout({dy, dropout, window, dy});
  if (positions_)
    context_.backend.positions_backward({.dy = dy, .window = window, .dpositions = positions_.gradient()});
  const Tensor whole = enter_gradient(context_, dy, tape);
  const std::int64_t n = whole.shape[0] * whole.shape[1];
  for (int s = 0; s < context_.tensor.local_shards(); ++s)
    context_.backend.embedding_backward({.tokens = ids.reshaped({n}),
                                         .dy = whole.reshaped({n, spec_.width}),
                                         .first_row = first_row(s),
                                         .dtable = table_.gradient(s)});
  return {{}, dout.encoder_output};
}

}  // namespace mindpipe
