#include "layers/convolution.h"

#include <algorithm>
#include <cmath>

namespace mindpipe {
namespace {

constexpr std::int64_t rows_at_once = 512;  ///< whose neighbours lie side by side, or one sample's

/// Refuses what a convolution over rows cannot reach.
void require_reach(const ConvolutionSpec& spec, const std::string& name) {
  MP_REQUIRE(spec.reach.fits(), Exit::bad_configuration,
             "{}: a convolution over {} rows (an odd number up to {} has a row in its middle)", name,
             spec.reach.taps, Reach::most);
}

Tensor lengths_of(const ConvolutionSpec& spec, const Tape& tape) {
  return spec.lengths.empty() ? Tensor{} : tape.batch.fields.at(spec.lengths);
}
/// The lengths of samples [first, first + count) alone.
Tensor some_lengths(const ConvolutionSpec& spec, const Tape& tape, std::int64_t first, std::int64_t count) {
  const Tensor lengths = lengths_of(spec, tape);
  return lengths ? lengths.range(first, count) : lengths;
}

/// Calls work(first, count) for runs of samples, in order: as many as have rows_at_once rows, at least one.
template <class Work>
void for_samples(const Tensor& x, const Work& work) {
  const std::int64_t samples = x.shape[0], each = std::max<std::int64_t>(1, rows_at_once / x.shape[1]);
  for (std::int64_t first = 0; first < samples; first += each) work(first, std::min(each, samples - first));
}
Tensor matrix_of(const Tensor& x) { return x.reshaped({x.rows(), x.cols()}); }

/// Memory for what goes into an activation, where there is one.
Tensor keep_before(Activation activation, const Shape& shape, DType dtype, Tape& tape) {
  return activation == Activation::none ? Tensor{} : tape.keep(shape, dtype);
}
/// The gradient of what went into an activation, which is restored.
Tensor through(const LayerContext& context, Activation activation, const Tensor& dy, Tape& tape) {
  if (activation == Activation::none) return dy;
  const Tensor d = tape.scratch(dy.shape, dy.dtype);
  context.backend.activation_backward({dy, tape.restore(), activation, d});
  return d;
}

Param taps_of(Unit& unit, const std::string& name, int taps, std::int64_t channels, double deviation) {
  return unit.add({{{name + ".taps.weight", taps}},
                   channels,
                   Split::none,
                   Form::whole,
                   {Initial::Kind::normal, deviation},
                   true});
}

}  // namespace

Dense::Dense(const LayerContext& context, Unit& unit, const std::string& name, std::int64_t inputs,
             std::int64_t outputs, Activation activation)
    : context_(context),
      outputs_(outputs),
      activation_(activation),
      product_(context, unit,
               {{{name, outputs}}, inputs, Split::none, true, even_deviation(inputs, outputs)}) {}

Tensor Dense::forward(const Tensor& x, Tape& tape) {
  const Tensor before = keep_before(activation_, {1, x.shape[0], x.shape[1], outputs_}, x.dtype, tape);
  const Tensor y = product_.forward(x, tape, activation_, before).at(0);
  if (before) tape.save(before);
  return y;
}

Tensor Dense::backward(const Tensor& dy, Tape& tape) {
  return product_.backward(through(context_, activation_, dy, tape), tape).at(0);
}

StandardConvolution::StandardConvolution(const LayerContext& context, Unit& unit, const std::string& name,
                                         const ConvolutionSpec& spec)
    : context_(context), spec_(spec) {
  require_reach(spec, name);
  ParamSpec weight{{{name + ".weight", spec.outputs}},
                   columns(),
                   Split::none,
                   Form::whole,
                   {Initial::Kind::normal, even_deviation(columns(), spec.reach.taps * spec.outputs)},
                   true};
  weight.of_products = 1;
  weight_ = unit.add(weight);
  bias_ = unit.add({{{name + ".bias", spec.outputs}}, 0, Split::none, Form::whole, {}, false});
}

Tensor StandardConvolution::neighbours(const Tensor& x, std::int64_t first, std::int64_t count,
                                       Tape& tape) const {
  const Tensor some = samples_of(x, first, count), beside = tape.scratch({some.rows(), columns()}, x.dtype);
  context_.backend.row_neighbours({some, some_lengths(spec_, tape, first, count), spec_.reach, beside});
  return beside;
}

Tensor StandardConvolution::forward(const Tensor& x, Tape& tape) {
  const Shape shape{x.shape[0], x.shape[1], spec_.outputs};
  const Tensor y = tape.keep(shape, x.dtype), before = keep_before(spec_.activation, shape, x.dtype, tape);
  for_samples(x, [&](std::int64_t first, std::int64_t count) {
    Tape::Scope scope(tape);
    context_.backend.linear({.x = neighbours(x, first, count, tape),
                             .w = weight_.value(),
                             .bias = bias_.value(),
                             .activation = spec_.activation,
                             .before = before ? matrix_of(samples_of(before, first, count)) : Tensor{},
                             .y = matrix_of(samples_of(y, first, count))});
  });
  tape.save(x);
  if (before) tape.save(before);
  return y;
}

Tensor StandardConvolution::backward(const Tensor& dy, Tape& tape) {
  const Tensor d = through(context_, spec_.activation, dy, tape), x = tape.restore(),
               dx = tape.scratch(x.shape, x.dtype);
  for_samples(x, [&](std::int64_t first, std::int64_t count) {
    Tape::Scope scope(tape);
    const Tensor d_some = matrix_of(samples_of(d, first, count)), beside = neighbours(x, first, count, tape);
    context_.backend.linear_backward_weight(
        {d_some, beside, weight_.gradient(), weight_.takes_first_product(0)});
    context_.backend.linear_backward_input({.dy = d_some, .w = weight_.value(), .dx = beside});
    context_.backend.row_neighbours_backward(
        {beside, some_lengths(spec_, tape, first, count), spec_.reach, samples_of(dx, first, count)});
  });
  context_.backend.bias_backward({d, bias_.gradient().reshaped({1, spec_.outputs})});
  return dx;
}

SeparableConvolution::SeparableConvolution(const LayerContext& context, Unit& unit, const std::string& name,
                                           const ConvolutionSpec& spec)
    : context_(context),
      spec_(spec),
      taps_(taps_of(unit, name, spec.reach.taps, spec.inputs, 1 / std::sqrt(std::max(1, spec.reach.taps)))),
      channels_(context, unit, name, spec.inputs, spec.outputs, spec.activation) {
  require_reach(spec, name);
}

Tensor SeparableConvolution::forward(const Tensor& x, Tape& tape) {
  const Tensor sums = tape.keep(x.shape, x.dtype);
  context_.backend.depthwise({x, taps_.value(), lengths_of(spec_, tape), spec_.reach, sums});
  tape.save(x);
  return channels_.forward(sums, tape);
}

Tensor SeparableConvolution::backward(const Tensor& dy, Tape& tape) {
  const Tensor dsums = channels_.backward(dy, tape), x = tape.restore(), lengths = lengths_of(spec_, tape),
               dx = tape.scratch(x.shape, x.dtype);
  context_.backend.depthwise_backward_weight({dsums, x, lengths, spec_.reach, taps_.gradient()});
  context_.backend.depthwise_backward_input({dsums, taps_.value(), lengths, spec_.reach, dx});
  return dx;
}

LightweightConvolution::LightweightConvolution(const LayerContext& context, Unit& unit,
                                               const std::string& name, const ConvolutionSpec& spec,
                                               std::int64_t shared)
    : context_(context), spec_(spec) {
  require_reach(spec, name);
  MP_REQUIRE(spec.inputs == spec.outputs && shared > 0 && spec.inputs % shared == 0, Exit::bad_configuration,
             "{}: {} channels to {}, whose weights are for {} channels each (as many come out, and their "
             "number is a multiple)",
             name, spec.inputs, spec.outputs, shared);
  taps_ = taps_of(unit, name, spec.reach.taps, spec.inputs / shared, 1);
}

Tensor LightweightConvolution::shared_taps(Tape& tape) const {
  const Tensor taps = tape.scratch({spec_.reach.taps, spec_.inputs}, context_.dtype);
  context_.backend.share_taps({taps_.value(), taps});
  return taps;
}

Tensor LightweightConvolution::forward(const Tensor& x, Tape& tape) {
  const Shape& shape = x.shape;
  const Tensor y = tape.keep(shape, x.dtype), before = keep_before(spec_.activation, shape, x.dtype, tape),
               sums = before ? before : y;
  context_.backend.depthwise({x, shared_taps(tape), lengths_of(spec_, tape), spec_.reach, sums});
  tape.save(x);
  if (before) {
    context_.backend.activation({before, spec_.activation, y});
    tape.save(before);
  }
  return y;
}

Tensor LightweightConvolution::backward(const Tensor& dy, Tape& tape) {
  const Tensor d = through(context_, spec_.activation, dy, tape), x = tape.restore(),
               taps = shared_taps(tape), lengths = lengths_of(spec_, tape),
               dtaps = tape.scratch(taps.shape, taps_.gradient().dtype), dx = tape.scratch(x.shape, x.dtype);
  context_.backend.fill({dtaps, 0});
  context_.backend.depthwise_backward_weight({d, x, lengths, spec_.reach, dtaps});
  context_.backend.share_taps_backward({dtaps, taps_.value(), taps_.gradient()});
  context_.backend.depthwise_backward_input({d, taps, lengths, spec_.reach, dx});
  return dx;
}

Tensor ConvolutionBranch::behind_earlier(const Tensor& x, Tape& tape) {
  const std::int64_t samples = x.shape[0], rows = x.shape[1], most = earlier_[0],
                     before = std::min(tape.position, most), all_rows = before + rows,
                     kept = std::min(most, all_rows);
  const Tensor cache = tape.caches.of(this, cache_shape(samples), x.dtype),
               all = tape.scratch({samples, all_rows, x.shape[2]}, x.dtype);
  for (std::int64_t i = 0; i < samples; ++i) {
    if (before > 0) context_.backend.copy(cache.at(i).row_range(0, before), all.at(i).row_range(0, before));
    context_.backend.copy(x.at(i), all.at(i).row_range(before, rows));
    context_.backend.copy(all.at(i).row_range(all_rows - kept, kept), cache.at(i).row_range(0, kept));
  }
  const Tensor y = convolution_->forward(all, tape), own = tape.scratch({samples, rows, y.shape[2]}, y.dtype);
  for (std::int64_t i = 0; i < samples; ++i)
    context_.backend.copy(y.at(i).row_range(before, rows), own.at(i));
  return own;
}

}  // namespace mindpipe
