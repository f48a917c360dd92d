#include "layers/two_sided.h"

namespace mindpipe {

void TwoSidedBranch::clear(const Tensor& x, const Tensor& y, const Tape& tape) const {
  if (!spec_.lengths.empty()) context_.backend.clear_padding({x, tape.batch.fields.at(spec_.lengths), y});
}

void TwoSidedBranch::drop(const Tensor& x, std::uint64_t purpose, const Tape& tape) const {
  const Dropout dropped = dropout_at(context_, spec_.dropout, purpose, tape);
  if (dropped.probability > 0) context_.backend.dropout({x, dropped, whole_sequences_of(x), x});
}

/// The first columns of x, or x itself where these are all.
Tensor TwoSidedBranch::cut(const Tensor& x, std::int64_t width, Tape& tape) const {
  if (width == x.cols()) return x;
  const Tensor y = tape.scratch({x.shape[0], x.shape[1], width}, x.dtype);
  context_.backend.cut_columns({x, y});
  return y;
}

Tensor TwoSidedBranch::forward(const Tensor& x, const Boundary&, Tape& tape) {
  Tensor h = enter(context_, x, tape);
  if (!spec_.lengths.empty()) {  // what entered may be read by others
    const Tensor seen = tape.keep(h.shape, h.dtype);
    clear(h, seen, tape);
    h = seen;
  }
  const Tensor sum = spec_.left->forward(h, tape);
  drop(sum, left_purpose_, tape);
  const Tensor right = spec_.right->forward(h, tape);
  drop(right, right_purpose_, tape);
  context_.backend.pad_columns({right, sum, sum});
  const Tensor normed = spec_.norm.forward(sum, tape, tape.keep(sum.shape, sum.dtype));
  clear(normed, normed, tape);
  Tensor y = spec_.closing->forward(normed, tape);
  if (spec_.closing_width < spec_.width) {
    const Tensor wide = tape.scratch(h.shape, h.dtype);
    context_.backend.pad_columns({.x = y, .y = wide});
    y = wide;
  }
  return own_rows(context_, y, tape);
}

Tensor TwoSidedBranch::backward(const Tensor& dy, const Boundary&, Tape& tape) {
  const Tensor whole = enter_gradient(context_, dy, tape),
               dnormed = spec_.closing->backward(cut(whole, spec_.closing_width, tape), tape),
               dsum = tape.scratch(dnormed.shape, dnormed.dtype);
  clear(dnormed, dnormed, tape);
  spec_.norm.backward(dnormed, {}, dsum, tape);
  const Tensor dright = tape.scratch({dsum.shape[0], dsum.shape[1], spec_.right_width}, dsum.dtype);
  context_.backend.cut_columns({dsum, dright});
  drop(dright, right_purpose_, tape);
  const Tensor dh_right = spec_.right->backward(dright, tape);
  drop(dsum, left_purpose_, tape);
  const Tensor dh = spec_.left->backward(dsum, tape);
  context_.backend.add({dh, dh_right, dh});
  clear(dh, dh, tape);
  return own_rows(context_, dh, tape);
}

}  // namespace mindpipe
