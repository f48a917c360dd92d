#pragma once
#include <map>
#include <vector>

#include "program/clock/task.h"
#include "program/lists/buffer_ring.h"

namespace mindpipe {

/// Where a rank's list has what crosses the edges of its chunks: what comes for a subnet arrives in its slot,
/// what else comes, and all that leaves, in rings of buffers.
class BoundaryRooms {
 public:
  BoundaryRooms(const Outline& outline, int rank, const Rings& rings);

  /// What a pass takes in from the chunk before it on its way, and leaves for the one behind. Where no
  /// message comes to a slot, the pass itself is the first to use it. A backward in pieces takes it in with
  /// all of them, and leaves it with the last.
  void cross(const Task& task, int way, const Ledger& ledger, std::int64_t place, Action& action);
  /// A message leaves from the buffer of its turn, or that was filled first.
  Room& leave(const Task& task, Action& send);
  /// In a slot, a forward's input lies where the micro-batch before it was, and a gradient follows the
  /// forward of its own. `is_first`: of the turn that is told, if any.
  Room& arrive(const Task& task, Action& receive, bool& is_first);

 private:
  BufferRing& ring(int peer, bool with_forward, bool outgoing) {
    return rings_.at({peer, with_forward, outgoing || peer == rank_});
  }

  const Outline& outline_;
  int rank_;
  std::map<RingKey, BufferRing> rings_;
  std::vector<Room> slots_;
};

}  // namespace mindpipe
