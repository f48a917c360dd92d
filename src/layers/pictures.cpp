#include "layers/pictures.h"

namespace mindpipe {
namespace {

/// The sum over all shards, on every rank.
Tensor summed(const LayerContext& context, const Tensor& shards) {
  const Tensor total = shards.at(0);
  if (context.tensor.logical() > 1) context.tensor.sum(shards, total);
  return total;
}

}  // namespace

Tensor PictureStem::pixels(Tape& tape) const {
  const PictureShape& p = picture_;
  const std::int64_t samples = tape.batch.samples;
  const Tensor made = tape.scratch({samples, p.patches(), p.channels}, context_.dtype);
  context_.backend.patches(
      {tape.batch.fields.at(field::picture).reshaped({samples, p.channels, p.height, p.width}), p, 0, made});
  return made;
}

Boundary PictureStem::forward(Boundary in, Tape& tape) {
  const std::int64_t samples = tape.batch.samples, rows = picture_.patches(), width = conv_.outputs();
  const Tensor y = tape.output({samples, rows_here(context_, rows), width}, context_.dtype);
  Tape::Scope scope(tape);
  const Tensor whole = y.shape[1] == rows ? y : tape.scratch({samples, rows, width}, context_.dtype);
  const Tensor convolved = norm_ ? tape.keep(whole.shape, context_.dtype) : whole;
  conv_.forward(pixels(tape), as_one_shard(convolved), tape);
  if (norm_) norm_->forward(convolved, whole, tape);
  if (y.shape[1] != rows) take_own_rows(context_, whole, y);
  return {y, in.encoder_output};
}

Boundary PictureStem::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  Tensor dy = enter_gradient(context_, dout.activation, tape);
  if (norm_) {
    const Tensor dconvolved = tape.scratch(dy.shape, dy.dtype);
    norm_->backward(dy, {}, dconvolved, tape);
    dy = dconvolved;
  }
  conv_.backward(as_one_shard(dy), pixels(tape), {}, tape);
  return {{}, dout.encoder_output};
}

PictureBlock::PictureBlock(const LayerContext& context, Unit& unit, const PictureBlockSpec& spec)
    : context_(context),
      spec_(spec),
      norm1_(context, unit, "norm1", Split::none, {spec.inputs, true, spec.epsilon, spec.momentum}),
      norm2_(context, unit, "norm2", Split::out, {spec.outputs, true, spec.epsilon, spec.momentum}),
      conv1_(context, unit, conv_spec("conv1", spec.inputs, spec.outputs, spec.window, Split::out)),
      conv2_(context, unit,
             conv_spec("conv2", spec.outputs, spec.outputs,
                       {spec.window.down(), spec.window.across(), spec.window.side, 1, 1}, Split::in)) {
  if (spec.inputs == spec.outputs && spec.window.stride == 1) return;
  PixelWindow corner = spec.window;
  corner.side = 1;
  shortcut_.emplace(context, unit, conv_spec("shortcut", spec.inputs, spec.outputs, corner, Split::none));
}

Boundary PictureBlock::forward(Boundary in, Tape& tape) {
  const Tensor x = in.activation;
  const std::int64_t samples = x.shape[0], rows = spec_.window.windows();
  const Tensor y = tape.output({samples, rows_here(context_, rows), spec_.outputs}, x.dtype);
  Tape::Scope scope(tape);
  const Tensor whole = enter(context_, x, tape), a1 = tape.scratch(whole.shape, x.dtype);
  norm1_.forward(whole, a1, tape);
  const Tensor h = tape.keep(behind(conv1_.shards(), samples, conv1_.outputs()), x.dtype);
  conv1_.forward(a1, h, tape);
  const Tensor a2 = tape.scratch(h.shape, x.dtype);
  norm2_.forward(h, a2, tape);
  const Tensor parts = tape.scratch(behind(conv2_.shards(), samples, spec_.outputs), x.dtype);
  conv2_.forward(a2, parts, tape);
  const Tensor branch = leave(context_, parts, tape);
  Tensor stream = x;
  if (shortcut_) {
    const Tensor all = tape.scratch({samples, rows, spec_.outputs}, x.dtype);
    shortcut_->forward(a1, as_one_shard(all), tape);
    stream = own_rows(context_, all, tape);
  }
  context_.backend.add({stream, branch, y});
  return {y, in.encoder_output};
}

Tensor PictureBlock::branch_gradient(const Tensor& dy, const Tensor& a1, Tape& tape) {
  const std::int64_t samples = dy.shape[0];
  const Tensor a2 = tape.scratch(behind(conv1_.shards(), samples, conv1_.outputs()), dy.dtype),
               da2 = tape.scratch(a2.shape, dy.dtype);
  norm2_.forward_again(a2, tape);
  conv2_.backward(dy, a2, da2, tape);
  norm2_.backward(da2, {}, da2, tape);
  norm1_.forward_again(a1, tape);
  const Tensor parts = tape.scratch({conv1_.shards(), a1.shape[0], a1.shape[1], a1.shape[2]}, dy.dtype);
  conv1_.backward(da2, a1, parts, tape);
  return summed(context_, parts);
}

Boundary PictureBlock::backward(Boundary dout, Tape& tape) {
  const std::int64_t samples = dout.activation.shape[0], rows = spec_.window.pixels();
  const Tensor dx = shortcut_
                        ? tape.scratch({samples, rows_here(context_, rows), spec_.inputs}, context_.dtype)
                        : dout.activation;
  Tape::Scope scope(tape);
  const Tensor dy = enter_gradient(context_, dout.activation, tape),
               a1 = tape.scratch({samples, rows, spec_.inputs}, context_.dtype),
               da1 = branch_gradient(dy, a1, tape);
  if (shortcut_) {
    const Tensor more = tape.scratch(as_one_shard(a1).shape, a1.dtype);
    shortcut_->backward(as_one_shard(dy), a1, more, tape);
    context_.backend.add({more.at(0), da1, da1});
  }
  const Tensor whole = dx.shape[1] == rows ? dx : da1;
  norm1_.backward(da1, shortcut_ ? Tensor{} : dy, whole, tape);
  if (dx.shape[1] != rows) take_own_rows(context_, whole, dx);
  return {dx, dout.encoder_output};
}

Boundary PooledClassifier::forward(Boundary in, Tape& tape) {
  MP_CHECK(tape.mode != Tape::Mode::generate, "a classifier of pictures does not continue texts");
  Tape::Scope scope(tape);
  const Tensor x = enter(context_, in.activation, tape), mean = tape.keep({x.shape[0], x.shape[2]}, x.dtype);
  {
    Tape::Scope whole(tape);
    const Tensor a = tape.scratch(x.shape, x.dtype);
    norm_.forward(x, a, tape);
    context_.backend.global_pool({a, mean});
  }
  if (tape.saves()) tape.save(mean);
  else if (tape.mode != Tape::Mode::calibrate) softmax_.evaluate(mean, tape);
  return in;
}

Boundary PooledClassifier::backward(Boundary, Tape& tape) {
  const Tensor x = tape.peek(2);
  const std::int64_t samples = x.shape[0], rows = x.shape[1], channels = x.shape[2];
  const Tensor dx = tape.scratch({samples, rows_here(context_, rows), channels}, x.dtype);
  Tape::Scope scope(tape);
  const Tensor mean = tape.restore(),
               parts = tape.scratch({context_.tensor.local_shards(), samples, channels}, x.dtype);
  softmax_.backward(mean, tape.batch.fields.at(field::targets).reshaped({samples}),
                    tape.losses.reshaped({samples}), parts, tape);
  const Tensor da = dx.shape[1] == rows ? dx : tape.scratch(x.shape, x.dtype);
  context_.backend.global_pool_backward({summed(context_, parts), da});
  norm_.backward(da, {}, da, tape);
  if (dx.shape[1] != rows) take_own_rows(context_, da, dx);
  return {dx, {}};
}

}  // namespace mindpipe
