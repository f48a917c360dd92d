#include "layers/tape_segments.h"

namespace mindpipe {

void TapeSegments::clear() {
  begins_.clear();
  for (Segment& segment : segments_) segment.used = 0;
  enter(own_room);
  arena_.release(0);
}

void TapeSegments::enter(int segment, int leaves) {
  current_ = segment;
  leaves_ = leaves;
  outputs_ = -1;
}

Tensor TapeSegments::take_in(int segment, const Shape& shape, DType dtype) {
  Segment& from = segments_[segment];
  arena_.release(from.begin + from.used);
  const Tensor t = arena_.take(shape, dtype);
  from.used = arena_.mark() - from.begin;
  from.most = std::max(from.most, from.used);
  MP_CHECK(arena_.mark() <= from.end, "a tape needs more than its room, which ends at byte {}", from.end);
  return t;
}

TapeSegments::Place TapeSegments::place_of(const Tensor& t) const {
  const std::size_t offset = arena_.offset_of(t.data);
  for (int number = 0; number < static_cast<int>(segments_.size()); ++number) {
    const Segment& segment = segments_[number];
    if (segment.used > 0 && offset >= segment.begin && offset - segment.begin < segment.used)
      return {number, offset - segment.begin, t.shape, t.dtype};
  }
  fail(Exit::internal, "byte {} is in no segment of the tape", offset);
}

std::size_t TapeSegments::end_block() {
  const std::size_t begin = begins_.back();
  begins_.pop_back();
  return begin;
}

}  // namespace mindpipe
