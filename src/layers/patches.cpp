#include "layers/patches.h"

#include <algorithm>

#include "layers/branch.h"

namespace mindpipe {

PatchEmbedding::PatchEmbedding(const LayerContext& context, Unit& unit, const std::string& path,
                               const PatchSpec& spec)
    : context_(context), spec_(spec), purpose_(purpose_of(path + ".dropout")) {
  const Initial drawn{Initial::Kind::normal, spec.deviation};
  ParamSpec weight{
      {{"patches.weight", spec.width}}, spec.picture.patch_size(), Split::none, Form::whole, drawn, true};
  weight.of_products = 1;
  weight_ = unit.add(weight);
  bias_ = residual_bias(unit, "patches", spec.width);
  class_ = unit.add({{{"class.weight", 1}}, spec.width, Split::none, Form::positions, drawn, true});
  positions_ =
      unit.add({{{"positions.weight", rows()}}, spec.width, Split::none, Form::positions, drawn, true});
}

std::int64_t PatchEmbedding::padded_rows(const PictureShape& picture, int logical_shards) {
  const std::int64_t rows = picture.patches() + 1;
  return (rows + logical_shards - 1) / logical_shards * logical_shards;
}

Tensor PatchEmbedding::patches(Tape& tape) const {
  const std::int64_t samples = tape.batch.samples,
                     all = padded_rows(spec_.picture, context_.tensor.logical());
  const Tensor numbers = tape.scratch({samples, all, spec_.picture.patch_size()}, context_.dtype);
  const PictureShape& shape = spec_.picture;
  const Tensor pictures =
      tape.batch.fields.at(field::picture).reshaped({samples, shape.channels, shape.height, shape.width});
  context_.backend.patches({pictures, shape, 1, numbers});
  return numbers.reshaped({samples * all, spec_.picture.patch_size()});
}

std::int64_t PatchEmbedding::rows_under(const SequencePart& sequence) const {
  return std::clamp<std::int64_t>(rows() - sequence.first, 0, sequence.rows);
}

Tensor PatchEmbedding::added_rows(const SequencePart& sequence, Tape& tape) const {
  Backend& backend = context_.backend;
  const std::int64_t width = spec_.width, count = rows_under(sequence);
  const Tensor all = tape.scratch({sequence.rows, width}, context_.dtype);
  backend.fill({all, 0});
  if (count == 0) return all;
  const Tensor added = all.row_range(0, count), firsts = tape.scratch({count}, DType::i32);
  backend.fill({firsts, 0});  // every row begins with the bias, the only row of its table
  backend.embedding({.tokens = firsts, .table = bias_.value().reshaped({1, width}), .y = added});
  if (sequence.first == 0)
    backend.copy(class_.value().reshaped({width}), added.row_range(0, 1).reshaped({width}));
  backend.add({added, positions_.value().row_range(sequence.first, count), added});
  return all;
}

Boundary PatchEmbedding::forward(Boundary in, Tape& tape) {
  const std::int64_t samples = tape.batch.samples,
                     all = padded_rows(spec_.picture, context_.tensor.logical());
  const std::int64_t local = context_.sequence_parallel ? all / context_.tensor.size() : all;
  const Tensor y = tape.output({samples, local, spec_.width}, context_.dtype);
  Tape::Scope scope(tape);
  const SequencePart sequence = sequence_part_of(context_, y);
  const Tensor whole = local == all ? y : tape.scratch({samples, all, spec_.width}, context_.dtype);
  context_.backend.linear(
      {.x = patches(tape), .w = weight_.value(), .y = whole.reshaped({samples * all, spec_.width})});
  for (std::int64_t s = 0; local < all && s < samples; ++s)
    context_.backend.copy(whole.at(s).row_range(sequence.first, local), y.at(s));
  const SequencePart beginning{samples, local, 0, local};
  context_.backend.add_positions(
      {.x = y, .positions = added_rows(sequence, tape), .sequence = beginning, .y = y});
  const Dropout dropout = dropout_at(context_, spec_.dropout, purpose_, tape);
  if (dropout.probability > 0) context_.backend.dropout({y, dropout, sequence, y});
  return {y, in.encoder_output};
}

void PatchEmbedding::add_row_gradients(const Tensor& dy, const SequencePart& sequence, Tape& tape) {
  Backend& backend = context_.backend;
  const std::int64_t width = spec_.width, count = rows_under(sequence);
  const DType exact = context_.dtype == DType::f64 ? DType::f64 : DType::f32;
  const Tensor rows = tape.scratch({1, sequence.rows, width}, exact);
  const auto clear = [&](std::int64_t first, std::int64_t some) {
    if (some > 0) backend.fill({rows.row_range(first, some), 0});
  };
  clear(0, sequence.rows);
  backend.positions_backward({dy, {sequence.samples, sequence.rows, 0, sequence.rows}, 0, rows.at(0)});
  clear(count, sequence.rows - count);
  if (count > 0)
    backend.accumulate(
        {rows.row_range(0, count),
         positions_.gradient().reshaped({this->rows(), width}).row_range(sequence.first, count)});
  if (sequence.first == 0 && count > 0) {
    backend.accumulate({rows.row_range(0, 1), class_.gradient()});
    clear(0, 1);
  }
  backend.bias_backward({rows, bias_.gradient()});
}

Boundary PatchEmbedding::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  const Tensor dy = dout.activation;
  const SequencePart sequence = sequence_part_of(context_, dy);
  const Dropout dropout = dropout_at(context_, spec_.dropout, purpose_, tape);
  if (dropout.probability > 0) context_.backend.dropout({dy, dropout, sequence, dy});
  add_row_gradients(dy, sequence, tape);
  const Tensor whole = enter_gradient(context_, dy, tape);
  context_.backend.linear_backward_weight({whole.reshaped({whole.rows(), spec_.width}), patches(tape),
                                           weight_.gradient(), weight_.takes_first_product(0)});
  return {{}, dout.encoder_output};
}

}  // namespace mindpipe
