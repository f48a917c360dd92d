#pragma once
#include <array>
#include <compare>
#include <map>
#include <vector>

#include "program/clock/prices.h"
#include "program/clock/task.h"
#include "program/schedules/gradient_turns.h"
#include "program/schedules/order.h"

namespace mindpipe {

/// Names a pair of rings of boundary buffers, the sender's and the receiver's.
struct RingPair {
  int from = 0, to = 0;
  bool with_forward = true;
  auto operator<=>(const RingPair&) const = default;
};

/// So many items of a line have to have ended.
struct StepNeed {
  int line = -1, count = 0;
};

/// A task of a step in its line, with what it needs of other lines.
struct StepItem {
  /// The places of needs: of a pass the payloads of its input, those of what lay where its output goes, the
  /// gathers of values that a forward reads, the sums of those whose slabs a backward takes, the copy of a
  /// segment that it finds or that makes room for one; of others what
  /// they work on, and the reader of what lay where a message arrives; of the update of a unit that comes its
  /// state and its gradient, too.
  enum : std::uint8_t {
    input = 0,
    work = 0,
    place = 1,
    output = 2,
    state = 2,
    gradient = 3,
    values = 4,
    slab = 4,
    segment = 5,
    needs_count = 6
  };
  Task task;
  std::array<StepNeed, needs_count> needs = {};
};

/// What one micro-batch sends through one cut: places of the pass that makes it, of the first and the last
/// piece of the one that reads it, and of its messages, in their lines.
struct StepCrossing {
  int writer = -1, reader = -1, last_reader = -1;
  std::array<int, 2> messages{-1, -1};
};

/// What goes through a pair of rings, in order.
struct StepRing {
  std::vector<StepCrossing> crossings;
  std::array<int, 2> lines{-1, -1};  ///< lines of each payload's messages
};

/// All tasks of a step in lines, each strictly first in, first out: passes and updates of a rank, sums and
/// gathers of a rank, the scalars of all, messages of one payload through a ring, exchanges of two ranks,
/// copies of a rank one way.
struct StepTasks {
  std::vector<std::vector<StepItem>> lines;
  std::map<RingPair, StepRing> rings;
  std::vector<std::vector<GradientLife>> lives;  ///< uses of each rank, in the order of sums over data
  std::vector<std::array<int, 2>> hand_overs;    ///< buffers between chunks of a rank, backwards and forwards
  std::vector<std::vector<int>> moving;          ///< units of each move
  int first_move =
      0;  ///< the first line of moves, of gradients that follow them and of copies; none is behind
  int before_scalars = 0;  ///< items of lines before that have to have ended

  int stages() const { return static_cast<int>(lives.size()); }
  int sums_of(int rank) const { return stages() + rank; }
  int scalars() const { return 2 * stages(); }
  const StepItem& pass(int rank, int place) const { return lines[rank][place]; }
};

/// The tasks of an order: with every backward of the last micro-batch block by block, so that sums over data
/// start while it goes on, and every need that holds whatever the rooms are. Refuses an outline whose blocks,
/// cuts and chunks do not go together.
StepTasks tasks_of_step(const Outline& outline, const PriceList& prices, const Order& order);

}  // namespace mindpipe
