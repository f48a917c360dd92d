#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "program/outline.h"
#include "program/schedules/order.h"

namespace mindpipe {

/// What becomes of a swapped block's segment of one micro-batch. Passes are named by their places in a rank's
/// order, other segments by their places among the rank's lives; -1: there is none.
struct SegmentLife {
  int chunk = 0, micro_batch = 0, block = 0;
  int forward = -1, backward = -1, last = -1;  ///< passes; behind the last one the slot is free
  int slot = -1;                               ///< slot, of the block's own, that the forward fills
  int forward_waits = -1;                      ///< segment that leaves this slot before
  bool is_stashed = false;                     ///< whether it leaves for the host
  int host = -1;                               ///< place in the host's memory
  int slot_back = -1;                          ///< slot to which it comes back
  int back_waits = -1;                         ///< segment that leaves that slot before ...
  int back_behind = -1;                        ///< ... or whose last pass frees it
};

/// The turns that segments of swapped blocks take in slots of the device, each block in its own: two, more
/// only where weight gradients are put off. Whoever takes a slot waits for an earlier pass of the order, or
/// for the stash behind one, so that nothing stands still. A segment whose backward comes directly behind its
/// forward stays; others leave behind the forward, and begin to come back one pass before their backward.
class SegmentTurns {
 public:
  /// `passes`: of one rank, in order.
  SegmentTurns(const Outline& outline, const std::vector<Pass>& passes);

  /// All segments, in the order of their forwards.
  const std::vector<SegmentLife>& lives() const { return lives_; }
  /// Segments that leave behind pass `pass`, in turn.
  const std::vector<int>& leaving(int pass) const { return leaving_[pass]; }
  /// Segments that begin to come back once pass `pass` is there, in turn.
  const std::vector<int>& coming_back(int pass) const { return coming_back_[pass]; }
  /// The place of a segment among the lives.
  int life_of(int chunk, int micro_batch, int block) const { return places_.at({chunk, micro_batch, block}); }

 private:
  void find_lives(const Outline& outline, const std::vector<Pass>& passes);
  void take_turns(int passes);

  std::vector<SegmentLife> lives_;
  std::vector<std::vector<int>> leaving_, coming_back_;
  std::map<std::tuple<int, int, int>, int> places_;
};

}  // namespace mindpipe
