#include "layers/tape.h"

#include <algorithm>

namespace mindpipe {

void Tape::save(const Tensor& t) {
  if (saves()) saved_.push_back(place_of(t));
}

Tensor Tape::restore() {
  MP_CHECK(!saved_.empty(), "the tape is empty (a backward without its forward)");
  const Place place = saved_.back();
  saved_.pop_back();
  return at(place);
}

Tensor Tape::peek(std::size_t above) const {
  MP_CHECK(above < saved_.size(), "the tape holds {} tensors (asked for number {} from the top)",
           saved_.size(), above);
  return at(saved_[saved_.size() - 1 - above]);
}

void Tape::weight_gradient(const Tensor& dy, const Tensor& x, const Param& param, int shard) {
  if (weight_gradients == WeightGradients::now) {
    backend_.linear_backward_weight({dy, x, param.gradient(shard)});
    return;
  }
  // The gradient is in scratch and gone when the layer returns; what is put off needs a copy.
  const Tensor copy = kept_.take(dy.shape, dy.dtype);
  backend_.copy(dy, copy);
  products_.push_back({place_of(copy), place_of(x), param, shard});
}

void Tape::run_weight_gradients(const std::vector<const Unit*>& units) {
  std::vector<Product> later;
  for (const Product& p : products_) {
    if (!units.empty() && std::find(units.begin(), units.end(), p.param.unit) == units.end())
      later.push_back(p);
    else backend_.linear_backward_weight({at(p.dy), at(p.x), p.param.gradient(p.shard)});
  }
  products_ = std::move(later);
}

Tensor Tape::cache(const void* layer, const Shape& shape, DType dtype) {
  MP_CHECK(cache_arena_ != nullptr, "this tape has no room for caches");
  Tensor& t = caches_[layer];
  if (!t) t = cache_arena_->take(shape, dtype);
  return t;
}

void Tape::clear() {
  saved_.clear();
  products_.clear();
  kept_.release(0);
}

}  // namespace mindpipe
