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
  std::int64_t turn = -1;  ///< whose content it was last, where turns are told
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
    if (!is_hand_over_) return at(filled_++);
    std::size_t next = 0;
    while (std::find(full_.begin(), full_.end(), next) != full_.end()) ++next;
    full_.push_back(next);
    return buffers_[next];
  }
  /// The buffer that was filled first of those that have not been emptied.
  Buffer& oldest() { return is_hand_over_ ? buffers_[full_.front()] : at(emptied_); }
  void empty_oldest() {
    if (is_hand_over_) full_.pop_front();
    else ++emptied_;
  }
  /// The buffer of the turn that is counted from 0 on, where not all are told in order.
  Buffer& at(std::int64_t turn) { return buffers_[static_cast<std::size_t>(turn) % buffers_.size()]; }

 private:
  bool is_hand_over_;
  std::vector<Buffer> buffers_;
  std::deque<std::size_t> full_;           ///< buffers of a hand-over that wait to be emptied
  std::int64_t filled_ = 0, emptied_ = 0;  ///< turns of a ring
};

}  // namespace mindpipe
