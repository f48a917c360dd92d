#include "layers/conv2d.h"

#include <algorithm>
#include <cmath>

namespace mindpipe {
namespace {

/// Bytes of neighbours that exist at once, where one sample has no more: what stays in a cache of the
/// processor, or fills a GPU. A constant of the kind of device, so of a run.
std::int64_t most_bytes(bool wants_many_rows) { return wants_many_rows ? std::int64_t{256} << 20 : 2 << 20; }

}  // namespace

void require_window(const PixelWindow& w, const std::string& name) {
  MP_REQUIRE(w.fits(), Exit::bad_configuration,
             "{}: windows of {} x {} pixels, stride {}, dilation {}, on {} x {} pixels (an odd side up to 15 "
             "has a pixel in its middle)",
             name, w.side, w.side, w.stride, w.dilation, w.height, w.width);
}

Conv2DSpec conv_spec(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                     const PixelWindow& window, Split split) {
  return {name,    inputs,
          outputs, window,
          split,   std::sqrt(2.0 / (static_cast<double>(window.taps()) * static_cast<double>(outputs)))};
}

Conv2D::Conv2D(const LayerContext& context, Unit& unit, const Conv2DSpec& spec)
    : context_(context), spec_(spec), inputs_(spec.inputs), outputs_(spec.outputs) {
  require_window(spec.window, spec.name);
  const int shards = context.tensor.logical();
  if (spec.split == Split::in) inputs_ /= shards;
  if (spec.split == Split::out) outputs_ /= shards;
  MP_REQUIRE((spec.split != Split::in || inputs_ * shards == spec.inputs) &&
                 (spec.split != Split::out || outputs_ * shards == spec.outputs),
             Exit::bad_configuration, "{}: {} channels to {} are not cut by reproducible.tensor={}",
             spec.name, spec.inputs, spec.outputs, shards);
  ParamSpec weight{{{spec.name + ".weight", spec.outputs}},
                   spec.inputs * spec.window.taps(),
                   spec.split,
                   Form::whole,
                   {Initial::Kind::normal, spec.deviation},
                   true};
  weight.of_products = 1;
  weight_ = unit.add(weight);
}

std::int64_t Conv2D::samples_at_once(std::int64_t samples) const {
  const std::int64_t bytes = spec_.window.windows() * spec_.window.taps() * inputs_ *
                             static_cast<std::int64_t>(bytes_of(context_.dtype));
  return std::clamp<std::int64_t>(most_bytes(context_.wants_many_rows) / bytes, 1, samples);
}

Tensor Conv2D::weight(int shard, Tape& tape) const {
  const Tensor stored = weight_.value(shard);
  const std::int64_t taps = spec_.window.taps();
  if (taps == 1) return stored;
  const Tensor turned = tape.scratch({outputs_, taps, inputs_}, stored.dtype);
  context_.backend.transpose({stored.reshaped({outputs_, inputs_, taps}), false, turned});
  return turned.reshaped({outputs_, taps * inputs_});
}

Tensor Conv2D::neighbours(const Tensor& x, Tape& tape) const {
  const std::int64_t rows = x.shape[0] * spec_.window.windows(), width = spec_.window.taps() * inputs_;
  if (!has_neighbours()) return x.reshaped({rows, width});
  const Tensor made = tape.scratch({rows, width}, x.dtype);
  context_.backend.pixel_neighbours({x, spec_.window, made});
  return made;
}

void Conv2D::forward(const Tensor& x, const Tensor& y, Tape& tape) {
  const std::int64_t windows = spec_.window.windows();
  for (int s = 0; s < shards(); ++s) {
    Tape::Scope scope(tape);
    const Tensor x_s = spec_.split == Split::in ? x.at(s) : x, w = weight(s, tape);
    const std::int64_t samples = x_s.shape[0], step = samples_at_once(samples);
    for (std::int64_t first = 0; first < samples; first += step) {
      Tape::Scope chunk(tape);
      const std::int64_t count = std::min(step, samples - first);
      context_.backend.linear({.x = neighbours(samples_of(x_s, first, count), tape),
                               .w = w,
                               .y = samples_of(y.at(s), first, count).reshaped({count * windows, outputs_})});
    }
  }
}

void Conv2D::backward(const Tensor& dy, const Tensor& x, const Tensor& dx, Tape& tape) {
  Backend& backend = context_.backend;
  const std::int64_t windows = spec_.window.windows(), taps = spec_.window.taps(), width = taps * inputs_;
  for (int s = 0; s < shards(); ++s) {
    Tape::Scope scope(tape);
    const Tensor x_s = spec_.split == Split::in ? x.at(s) : x,
                 dy_s = spec_.split == Split::in ? dy : dy.at(s), w = weight(s, tape),
                 gradient = weight_.gradient(s);
    const Tensor dw = taps == 1 ? gradient : tape.scratch({outputs_, width}, gradient.dtype);
    const bool is_first = weight_.takes_first_product(s), writes = taps > 1 || is_first;
    const std::int64_t samples = x_s.shape[0], step = samples_at_once(samples);
    for (std::int64_t first = 0; first < samples; first += step) {
      Tape::Scope chunk(tape);
      const std::int64_t count = std::min(step, samples - first);
      const Tensor rows = samples_of(dy_s, first, count).reshaped({count * windows, outputs_}),
                   near = neighbours(samples_of(x_s, first, count), tape);
      backend.linear_backward_weight({rows, near, dw, writes && first == 0});
      if (!dx) continue;
      const Tensor to = samples_of(dx.at(s), first, count);
      // The neighbours have been read: their gradients take their place.
      const Tensor dnear = has_neighbours() ? near : to.reshaped({count * windows, width});
      backend.linear_backward_input({.dy = rows, .w = w, .dx = dnear});
      if (has_neighbours()) backend.pixel_neighbours_backward({dnear, spec_.window, to});
    }
    if (taps > 1)
      backend.transpose(
          {dw.reshaped({outputs_, taps, inputs_}), !is_first, gradient.reshaped({outputs_, inputs_, taps})});
  }
}

PixelWindow each_pixel(const PixelWindow& behind) { return {behind.down(), behind.across(), 1, 1, 1}; }

SeparableConv2D::SeparableConv2D(const LayerContext& context, Unit& unit, const Conv2DSpec& spec)
    : context_(context),
      spec_(spec),
      taps_(unit.add({{{spec.name + ".depthwise.weight", spec.inputs}},
                      spec.window.taps(),
                      Split::none,
                      Form::whole,
                      {Initial::Kind::normal, spec.deviation * std::sqrt(spec.outputs)},
                      true})),
      pointwise_(context, unit,
                 {spec.name + ".pointwise", spec.inputs, spec.outputs, each_pixel(spec.window), Split::none,
                  spec.deviation * std::sqrt(spec.window.taps())}) {
  require_window(spec.window, spec.name);
  MP_CHECK(spec.split == Split::none, "{}: a separable convolution is not cut", spec.name);
}

Tensor SeparableConv2D::taps(Tape& tape) const {
  const std::int64_t taps = spec_.window.taps();
  const Tensor turned = tape.scratch({taps, spec_.inputs}, context_.dtype);
  context_.backend.transpose({taps_.value().reshaped({1, spec_.inputs, taps}), false, turned});
  return turned;
}

Tensor SeparableConv2D::depthwise(const Tensor& x, const Tensor& taps, Tape& tape) const {
  const Tensor y = tape.scratch({x.shape[0], spec_.window.windows(), spec_.inputs}, x.dtype);
  context_.backend.pixel_depthwise({x, taps, spec_.window, y});
  return y;
}

void SeparableConv2D::forward(const Tensor& x, const Tensor& y, Tape& tape) {
  Tape::Scope scope(tape);
  pointwise_.forward(depthwise(x, taps(tape), tape), y.reshaped({1, y.shape[0], y.shape[1], y.shape[2]}),
                     tape);
}

void SeparableConv2D::backward(const Tensor& dy, const Tensor& x, const Tensor& dx, Tape& tape) {
  Tape::Scope scope(tape);
  Backend& backend = context_.backend;
  const std::int64_t channels = spec_.inputs, taps = spec_.window.taps();
  const Tensor w = this->taps(tape), d = depthwise(x, w, tape);
  const Tensor dd = tape.scratch({1, d.shape[0], d.shape[1], channels}, d.dtype);
  pointwise_.backward(dy.reshaped({1, dy.shape[0], dy.shape[1], dy.shape[2]}), d, dd, tape);
  const Tensor gradient = taps_.gradient();
  const Tensor parts = tape.scratch({pixel_chunks(d.rows()), taps * channels}, gradient.dtype),
               dw = tape.scratch({1, taps * channels}, gradient.dtype);
  backend.pixel_depthwise_backward_weight({dd.at(0), x, spec_.window, parts});
  backend.fill({dw, 0});
  backend.bias_backward({parts, dw});
  backend.transpose({dw.reshaped({1, taps, channels}), true, gradient});
  backend.pixel_depthwise_backward_input({dd.at(0), w, spec_.window, dx});
}

}  // namespace mindpipe
