#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "program/clock/task.h"
#include "program/clock/transfer.h"
#include "program/lists/buffer_ring.h"
#include "program/lists/list_stretch.h"

namespace mindpipe {

/// Writes the list of one rank: the actions that tasks are there, each waiting for what it needs.
/// - Every rank's writer is told the same tasks of all ranks in the same order, but for passes and updates,
///   which others may leave out. Tickets count the communication of all of them.
/// - What arrives lies in its task's slot, or in a ring where the task names none.
class ListWriter {
 public:
  /// `window`: subnets that read one version of what all share. `outline` stays as it is.
  ListWriter(const Outline& outline, int rank, const Rings& rings, std::int64_t window = 0);

  void add(const Task& task);
  /// What the list goes on with since it was last taken.
  ListStretch take();

 private:
  /// What a window's subnets add to what all share, on its way to all ranks of use.
  struct Window {
    Room added;                ///< backwards write it
    std::map<int, Room> sums;  ///< sum over data of each unit
    Room exchanged;            ///< all transfers read it, and the update writes it
  };

  std::int64_t place() const { return begin_ + static_cast<std::int64_t>(stretch_.actions.size()); }
  void put(Action action, std::int64_t time);
  void put_parts(Action action, const Transfer& transfer, std::int64_t time);
  bool takes_part(const Task& task);
  int rank_of(int chunk) const;
  BufferRing& ring(int peer, bool with_forward, bool outgoing);
  void pass(ActionKind kind, const Task& task);
  void cross(const Task& task, int way, Action& action);
  void message(const Task& task);
  Room& leave(const Task& task, Action& send);
  Room& arrive(const Task& task, Action& receive);
  void sum(const Task& task);
  void update(const Task& task);
  void update_shared(const Task& task);
  void exchange(const Task& task);
  void move(const Task& task);

  const Outline& outline_;
  int rank_;
  std::int64_t window_;
  std::vector<int> shared_units_;  ///< units of this rank that all subnets share
  Ledger ledger_;
  std::int64_t begin_ = 0;    ///< entries of the list before the stretch
  std::int64_t tickets_ = 0;  ///< communications so far
  ListStretch stretch_;
  std::map<RingKey, BufferRing> rings_;
  std::vector<Room> slots_;
  std::vector<Room> slabs_;
  std::vector<Room> units_;                            ///< states of units that move, here
  std::map<std::int64_t, std::vector<int>> came_for_;  ///< units that move here, by reader
  std::map<std::int64_t, Window> windows_;
  std::array<Room, 2> arrivals_;  ///< what other ranks add, of even and odd windows
};

}  // namespace mindpipe
