#include "state/state_reader.h"

#include <algorithm>
#include <cstring>

#include "state/staging_buffer.h"

namespace mindpipe {

void StateReader::open(int index) {
  if (index == unit_) return;
  unit_ = index;
  // An empty part has no state of its own, and its neighbours have all of it.
  begin_ = state_ == "value" || state_ == older_state ? 0 : residency_.shares().of(index).begin();
  kept_ = residency_.newest(index, state_);
  data_ = kept_.as<std::byte>();
  if (host_reads(backend_)) return;
  copy_.resize(kept_.bytes());
  if (kept_) backend_.download(kept_, copy_.data());
  data_ = copy_.data();
}

void StateReader::read(int unit, std::int64_t first, std::int64_t count, std::byte* words,
                       std::int64_t step) {
  open(unit);
  const std::int64_t begin = std::max(first, begin_), end = std::min(first + count, begin_ + kept_.count());
  if (begin >= end) return;
  words += (begin - first) * step * 4;
  if (kept_.dtype == DType::f32 && step == 1) {
    std::memcpy(words, data_ + (begin - begin_) * 4, static_cast<std::size_t>(end - begin) * 4);
    return;
  }
  const std::size_t bytes = bytes_of(kept_.dtype);
  for (std::int64_t i = 0; i < end - begin; ++i) {
    std::uint32_t word = 0;  // the upper half of it for bf16
    std::memcpy(reinterpret_cast<std::byte*>(&word) + 4 - bytes,
                data_ + (begin - begin_ + i) * static_cast<std::int64_t>(bytes), bytes);
    std::memcpy(words + i * step * 4, &word, 4);
  }
}

}  // namespace mindpipe
