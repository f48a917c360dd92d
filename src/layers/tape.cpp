#include "layers/tape.h"

#include <algorithm>

#include "comm/fault_points.h"
#include "layers/norm.h"

namespace mindpipe {

void Tape::save(const Tensor& t) {
  if (!saves()) return;
  if (scratch_.holds(t.data)) {
    const std::size_t offset = scratch_.offset_of(t.data);
    for (const InScratch& known : in_scratch_)
      if (known.offset == offset && known.of_norm.x.shape.count() == t.count()) {
        saved_.push_back({{TapeSegments::own_room, 0, t.shape, t.dtype}, known.of_norm});
        return;
      }
  }
  saved_.push_back({segments_.place_of(t), {}});
}

Tensor Tape::restore() {
  MP_CHECK(!saved_.empty(), "the tape is empty (a backward without its forward)");
  const Saved saved = saved_.back();
  saved_.pop_back();
  if (saved.of_norm.norm == nullptr) return segments_.at(saved.place);
  const Tensor y = made_again(saved.place.shape, saved.place.dtype);
  saved.of_norm.norm->forward_again(segments_.at(saved.of_norm.x), segments_.at(saved.of_norm.statistics), y);
  return y;
}

void Tape::can_make_again(const Tensor& y, const Norm& norm, const Tensor& x, const Tensor& statistics) {
  if (!saves() || segments_.holds(y)) return;
  const std::size_t offset = scratch_.offset_of(y.data);
  std::erase_if(in_scratch_, [&](const InScratch& known) { return known.offset == offset; });
  in_scratch_.push_back({offset, {&norm, segments_.place_of(x), segments_.place_of(statistics)}});
}

Tensor Tape::peek(std::size_t above) const {
  MP_CHECK(above < saved_.size(), "the tape holds {} tensors (asked for number {} from the top)",
           saved_.size(), above);
  const Saved& saved = saved_[saved_.size() - 1 - above];
  MP_CHECK(saved.of_norm.norm == nullptr, "number {} from the top is made again by `restore` only", above);
  return segments_.at(saved.place);
}

void Tape::release_scratch(std::size_t mark) {
  std::erase_if(in_scratch_, [&](const InScratch& known) { return known.offset >= mark; });
  scratch_.release(mark);
}

void Tape::gives_up(const Tensor& t) {
  if (weight_gradients == WeightGradients::now || !segments_.holds(t)) return;
  const Place there = segments_.place_of(t);
  const GivenUp place{there.segment, there.offset, bytes_for(t.shape, t.dtype)};
  const auto meets = [&](int segment, std::size_t offset, std::size_t bytes) {
    return segment == place.segment && offset < place.offset + place.bytes && place.offset < offset + bytes;
  };
  const auto reads = [&](const Place& operand) {
    return meets(operand.segment, operand.offset, bytes_for(operand.shape, operand.dtype));
  };
  const bool is_read = std::any_of(products_.begin(), products_.end(), [&](const Product& product) {
    return reads(product.x) || reads(product.dy);
  });
  const bool is_known = std::any_of(given_up_.begin(), given_up_.end(), [&](const GivenUp& one) {
    return meets(one.segment, one.offset, one.bytes);
  });
  if (!is_read && !is_known) given_up_.push_back(place);
}

Tensor Tape::lasting(const Tensor& dy) {
  if (weight_gradients == WeightGradients::now) return dy;
  // The gradient is in scratch and gone when the layer returns.
  const std::size_t bytes = bytes_for(dy.shape, dy.dtype);
  const auto place = std::find_if(given_up_.rbegin(), given_up_.rend(),
                                  [&](const GivenUp& one) { return one.bytes == bytes; });
  Tensor copy;
  if (place != given_up_.rend()) {
    copy = segments_.at({place->segment, place->offset, dy.shape, dy.dtype});
    given_up_.erase(std::next(place).base());
  } else {
    copy = segments_.take(dy.shape, dy.dtype);
  }
  backend_.copy(dy, copy);
  return copy;
}

void Tape::weight_gradient(const Tensor& dy, const Tensor& x, const Param& param, int shard) {
  if (weight_gradients == WeightGradients::now) {
    backend_.linear_backward_weight({dy, x, param.gradient(shard), param.takes_first_product(shard)});
    return;
  }
  const Tensor lasts = segments_.holds(dy) ? dy : lasting(dy);
  products_.push_back({segments_.place_of(lasts), segments_.place_of(x), param, shard});
  if (is_left_out("tape", "product"))  // as if nobody read x any more
    given_up_.push_back({products_.back().x.segment, products_.back().x.offset, bytes_for(x.shape, x.dtype)});
}

void Tape::run_weight_gradients(const std::vector<const Unit*>& units) {
  std::vector<Product> later;
  for (const Product& p : products_) {
    if (!units.empty() && std::find(units.begin(), units.end(), p.param.unit) == units.end())
      later.push_back(p);
    else
      backend_.linear_backward_weight({segments_.at(p.dy), segments_.at(p.x), p.param.gradient(p.shard),
                                       p.param.takes_first_product(p.shard)});
  }
  products_ = std::move(later);
}

void Tape::clear() {
  saved_.clear();
  in_scratch_.clear();
  products_.clear();
  given_up_.clear();
  segments_.clear();
}

}  // namespace mindpipe
