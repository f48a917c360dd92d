#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "program/lists/ledger.h"

namespace mindpipe {

/// Names a ring on a rank: the neighbour, the direction of travel, and whether it leaves or arrives. A peer
/// equal to the rank itself is the hand-over between two chunks of one rank.
struct RingKey {
  int peer = 0;
  bool with_forward = true, outgoing = true;
  auto operator<=>(const RingKey&) const = default;
};
/// The numbers of the boundary buffers in each ring of a rank.
using Rings = std::map<RingKey, std::vector<int>>;

/// A boundary buffer.
struct Buffer {
  int number = -1;
  Room room;
};

/// Buffers that take turns, and are emptied in the order in which they were filled. A hand-over fills the
/// first that is empty.
class BufferRing {
 public:
  BufferRing(const std::vector<int>& numbers, bool is_hand_over) : is_hand_over_(is_hand_over) {
    for (const int number : numbers) buffers_.push_back({number, {}});
  }
  /// The buffer that is filled next.
  Buffer& fill() {
    std::size_t next = filled_++ % buffers_.size();
    if (is_hand_over_)
      for (next = 0; std::find(full_.begin(), full_.end(), next) != full_.end();) ++next;
    full_.push_back(next);
    return buffers_[next];
  }
  /// The buffer that was filled first of those that have not been emptied.
  Buffer& oldest() { return buffers_[full_.front()]; }
  void empty_oldest() { full_.pop_front(); }

 private:
  bool is_hand_over_;
  std::vector<Buffer> buffers_;
  std::deque<std::size_t> full_;
  std::size_t filled_ = 0;
};

}  // namespace mindpipe
