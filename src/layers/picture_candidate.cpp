#include "layers/picture_candidate.h"

namespace mindpipe {

PictureCandidate::PictureCandidate(const LayerContext& context, Unit* unit, const PictureCandidateSpec& spec)
    : context_(context), spec_(spec) {
  if (spec.pool) pool_.emplace(context, *spec.pool, spec.window);
  if (!spec.has_parameters()) return;
  const PixelWindow window = spec.pool ? each_pixel(spec.window) : spec.window;
  const Conv2DSpec conv = conv_spec("conv", spec.inputs, spec.outputs, window, Split::none);
  if (spec.separable) separable_.emplace(context, *unit, conv);
  else conv_.emplace(context, *unit, conv);
  norm_.emplace(context, *unit, "norm", Split::none, spec.norm);
}

Tensor PictureCandidate::activated(const Tensor& x, Tape& tape) const {
  if (!activates()) return x;
  const Tensor a = tape.scratch(x.shape, x.dtype);
  context_.backend.activation({x, Activation::relu, a});
  return a;
}

void PictureCandidate::convolve(const Tensor& x, const Tensor& y, Tape& tape) {
  if (separable_) separable_->forward(x, y, tape);
  else conv_->forward(x, as_one_shard(y), tape);
}

void PictureCandidate::unconvolve(const Tensor& dy, const Tensor& x, const Tensor& dx, Tape& tape) {
  if (separable_) separable_->backward(dy, x, dx, tape);
  else conv_->backward(as_one_shard(dy), x, as_one_shard(dx), tape);
}

void PictureCandidate::whole_forward(const Tensor& x, const Tensor& y, Tape& tape) {
  if (!norm_) return pool_->forward(x, y, tape);
  Tensor entering = x;
  if (pool_) {
    entering = tape.keep({x.shape[0], spec_.window.windows(), spec_.inputs}, x.dtype);
    pool_->forward(x, entering, tape);
  }
  tape.save(entering);
  const Tensor convolved = tape.keep(y.shape, y.dtype);
  convolve(activated(entering, tape), convolved, tape);
  norm_->forward(convolved, y, tape);
}

void PictureCandidate::whole_backward(const Tensor& dy, const Tensor& dx, Tape& tape) {
  if (!norm_) return pool_->backward(dy, dx, tape);
  const Tensor dconvolved = tape.scratch(dy.shape, dy.dtype);
  norm_->backward(dy, {}, dconvolved, tape);
  const Tensor entering = tape.restore(), d = pool_ ? tape.scratch(entering.shape, dy.dtype) : dx;
  unconvolve(dconvolved, activated(entering, tape), d, tape);
  if (activates()) context_.backend.activation_backward({d, entering, Activation::relu, d});
  if (pool_) pool_->backward(d, dx, tape);
}

Boundary PictureCandidate::forward(Boundary in, Tape& tape) {
  const Tensor x = in.activation;
  const std::int64_t samples = x.shape[0], rows = spec_.window.windows();
  const Tensor y = tape.output({samples, rows_here(context_, rows), spec_.outputs}, x.dtype);
  Tape::Scope scope(tape);
  const Tensor whole = enter(context_, x, tape);
  const bool is_direct = !spec_.adds() && y.shape[1] == rows;
  const Tensor made = is_direct ? y : tape.scratch({samples, rows, spec_.outputs}, x.dtype);
  whole_forward(whole, made, tape);
  if (spec_.adds()) context_.backend.add({x, own_rows(context_, made, tape), y});
  else if (!is_direct) take_own_rows(context_, made, y);
  return {y, in.encoder_output};
}

Boundary PictureCandidate::backward(Boundary dout, Tape& tape) {
  const Tensor dy = dout.activation;
  const std::int64_t samples = dy.shape[0], rows = spec_.window.pixels();
  const Tensor dx =
      spec_.halves() ? tape.scratch({samples, rows_here(context_, rows), spec_.inputs}, dy.dtype) : dy;
  Tape::Scope scope(tape);
  const bool is_direct = spec_.halves() && dx.shape[1] == rows;
  const Tensor made = is_direct ? dx : tape.scratch({samples, rows, spec_.inputs}, dy.dtype);
  whole_backward(enter_gradient(context_, dy, tape), made, tape);
  if (spec_.adds()) context_.backend.add({dy, own_rows(context_, made, tape), dx});
  else if (!is_direct) take_own_rows(context_, made, dx);
  return {dx, dout.encoder_output};
}

}  // namespace mindpipe
