#pragma once
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/memory.h"

namespace mindpipe {

/// Where a tape takes what it keeps: from segments of an arena, which it may share with other tapes. It has
/// its own room; what lies beside that, where a backward in halves lays down what its products read (it comes
/// later); and one segment for each block, if any, whose part of the tape may lie elsewhere at its backward.
class TapeSegments {
 public:
  enum : int { own_room = 0, beside = 1, first_of_blocks = 2 };

  /// A tensor's, wherever its segment lies.
  struct Place {
    int segment = 0;
    std::size_t offset = 0;  ///< in the segment
    Shape shape;
    DType dtype = DType::f32;
  };

  explicit TapeSegments(Arena& arena) : arena_(arena) {}

  /// Says how many segments there may be.
  void have(int count) { segments_.resize(std::max<std::size_t>(count, segments_.size())); }
  /// Says where a segment lies from now on; what is in it has moved along.
  void lay(int segment, std::size_t begin, std::size_t end) {
    segments_[segment].begin = begin;
    segments_[segment].end = end;
  }
  /// Says that nothing is in a segment any more.
  void empty(int segment) { segments_[segment].used = 0; }
  /// Says that nothing is in any segment.
  void clear();
  /// Takes from this segment from now on; what the last block of the next range gives goes to segment
  /// `leaves`, -1: to the same one.
  void enter(int segment, int leaves = -1);
  /// Tells whether the next block's output is the one that leaves.
  void gives_last(bool is_last) { outputs_ = is_last ? leaves_ : -1; }
  /// What has arrived at the beginning of the arena is the micro-batch's own.
  void keep_arrived() { segments_[own_room].used = arena_.mark(); }

  Tensor take(const Shape& shape, DType dtype) { return take_in(current_, shape, dtype); }
  /// Takes a block's output.
  Tensor take_output(const Shape& shape, DType dtype) {
    return take_in(outputs_ < 0 ? current_ : outputs_, shape, dtype);
  }
  Tensor take_in(int segment, const Shape& shape, DType dtype);

  bool holds(const Tensor& t) const { return arena_.holds(t.data); }
  Place place_of(const Tensor& t) const;
  Tensor at(const Place& place) const {
    return {arena_.address_of(segments_[place.segment].begin + place.offset), place.shape, place.dtype};
  }

  /// Where a segment lies, as far as it is taken.
  std::pair<std::size_t, std::size_t> taken(int segment) const {
    return {segments_[segment].begin, segments_[segment].begin + segments_[segment].used};
  }
  /// Bytes that were ever taken of a segment.
  std::size_t most(int segment) const { return segments_[segment].most; }

  /// How far the segment is taken that is taken from.
  std::size_t mark() const { return segments_[current_].used; }
  void release(std::size_t mark) { segments_[current_].used = mark; }
  /// Remembers how far the tape reaches where a block begins, last in, first out.
  void begin_block() { begins_.push_back(mark()); }
  /// The beginning that was remembered last, which is forgotten.
  std::size_t end_block();

 private:
  struct Segment {
    std::size_t begin = 0, end = std::numeric_limits<std::size_t>::max();
    std::size_t used = 0, most = 0;
  };

  Arena& arena_;
  std::vector<Segment> segments_ = std::vector<Segment>(first_of_blocks);
  int current_ = own_room;           ///< segment that is taken from
  int leaves_ = -1;                  ///< segment of what leaves the range of blocks; -1: the same
  int outputs_ = -1;                 ///< segment of the next output; -1: the same
  std::vector<std::size_t> begins_;  ///< where blocks that are computed again begin
};

}  // namespace mindpipe
