#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "program/check/followed_waits.h"
#include "program/clock/task.h"
#include "program/clock/transfer.h"
#include "program/list_stretch.h"
#include "program/lists/boundary_rooms.h"
#include "program/lists/segment_rooms.h"
#include "program/schedules/gradient_turns.h"

namespace mindpipe {

/// Writes the list of one rank: the actions that tasks are there, each waiting for what it needs.
/// Tickets count communication: a writer that is told the same tasks of all ranks in the same order as the
/// others (but for passes and updates, which others may leave out) counts by itself.
class ListWriter {
 public:
  /// Writes a step. `turns`: those of gradients in slabs, or none. `outline` and `turns` stay as they are.
  ListWriter(const Outline& outline, int rank, const Rings& rings, const GradientTurns* turns);
  /// Writes subnets or forwards. `window`: subnets that read one version of what all share.
  ListWriter(const Outline& outline, int rank, const Rings& rings, std::int64_t window = 0);

  /// `ticket`: that of its communication, where not all tasks are told.
  void add(const Task& task, std::int64_t ticket = -1);
  /// What the list goes on with since it was last taken.
  ListStretch take();

 private:
  /// What a step, or a window's subnets to what all share, adds to gradients, on its way to all ranks of use.
  struct Window {
    Room added;                    ///< a window's backwards write it
    std::map<UnitUse, Room> sums;  ///< sum over data of each use
    Room exchanged;                ///< all transfers read it, and the update, or the scalars, writes it
  };

  void put(Action action, std::int64_t time);
  void put_parts(const Task& task, Action action, const Transfer& transfer);
  bool takes_part(const Task& task);
  void pass(ActionKind kind, const Task& task);
  void message(const Task& task);
  void sum(const Task& task);
  void scalars(const Task& task);
  void update(const Task& task);
  void gather(const Task& task);
  void update_shared(const Task& task);
  void exchange(const Task& task);
  void hand_over(const Task& task, Action& action);
  void move(const Task& task);
  void copy(const Task& task);
  void copy_segment(const Task& task);

  const Outline& outline_;
  int rank_;
  std::int64_t window_;
  std::vector<int> shared_units_;  ///< units of this rank that all subnets share
  Ledger ledger_;
  FollowedWaits waits_;
  std::int64_t begin_ = 0, place_ = 0;  ///< entries of the list before the stretch, and so far
  std::int64_t tickets_ = 0;            ///< communications so far
  bool goes_on_ = false;                ///< whether the newest pass is a piece that another follows
  ListStretch stretch_;
  BoundaryRooms boundaries_;
  /// Where gradients add up: slabs of subnets; of a step slabs, or each block's own place.
  std::vector<Room> slabs_;
  std::vector<std::vector<int>> slabs_of_block_;       ///< where a step adds up what each block makes
  std::map<std::pair<int, int>, Room> added_;          ///< newest backwards of subnets, by slab and block
  std::vector<Room> units_;                            ///< values or states of units here
  std::map<std::int64_t, std::vector<int>> came_for_;  ///< units that move here, by reader
  Room leaving_;                                       ///< written by moves that leave for the next users
  std::map<std::int64_t, Window> windows_;
  std::map<int, int> fetched_;                    ///< units whose state has come, and the slot of each
  std::array<Room, state_slots> slots_of_state_;  ///< where it lies on the device
  SegmentRooms segments_;                         ///< segments of swapped blocks
  std::map<int, Room> came_gradients_;            ///< gradients of units that a moving step brings here
  std::array<Room, 2> arrivals_;                  ///< what other ranks add, of even and odd windows
};

}  // namespace mindpipe
