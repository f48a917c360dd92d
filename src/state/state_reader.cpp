#include "state/state_reader.h"

#include <algorithm>
#include <cstring>

namespace mindpipe {
namespace {

/// The first i from 0 on with first + i * step >= bound.
std::int64_t steps_to(std::int64_t bound, std::int64_t first, std::int64_t step) {
  return bound <= first ? 0 : (bound - first + step - 1) / step;
}

}  // namespace

void StateReader::open(int index) {
  if (index == unit_) return;
  unit_ = index;
  begin_ = end_ = 0;
  Tensor tensor;
  if (slot_ == "value") {
    tensor = stage_.unit(index).flat_values();
  } else {  // an empty part has no state of its own, and its neighbours have all of it
    for (const auto& [name, part] : updates_.optimizer_of(index)->slots())
      if (name == slot_) tensor = part;
    begin_ = updates_.optimizer_of(index)->begin();
  }
  end_ = begin_ + tensor.count();
  dtype_ = tensor.dtype;
  data_ = tensor.as<std::byte>();
  Backend& backend = stage_.context().backend;
  if (host_reads(backend)) return;
  copy_.resize(tensor.bytes());
  if (tensor) backend.download(tensor, copy_.data());
  data_ = copy_.data();
}

void StateReader::read(int unit, std::int64_t first, std::int64_t step, std::int64_t count,
                       std::byte* words) {
  open(unit);
  const std::int64_t last = std::min(count, steps_to(end_, first, step));
  std::int64_t i = steps_to(begin_, first, step);
  if (dtype_ == DType::f32 && step == 1 && i < last) {
    std::memcpy(words + i * 4, data_ + (first + i - begin_) * 4, static_cast<std::size_t>(last - i) * 4);
    return;
  }
  for (; i < last; ++i) {
    const std::int64_t at = first + i * step - begin_;
    std::uint32_t word = 0;
    if (dtype_ == DType::f32) {
      std::memcpy(&word, data_ + at * 4, 4);
    } else {
      std::uint16_t half = 0;
      std::memcpy(&half, data_ + at * 2, 2);
      word = std::uint32_t{half} << 16;
    }
    std::memcpy(words + i * 4, &word, 4);
  }
}

}  // namespace mindpipe
