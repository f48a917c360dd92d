#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "program/causal/causal_planner.h"
#include "program/lists/list_stretch.h"

namespace mindpipe {

/// Writes down, for one rank, what a planner has seen to start: its passes, both ends of its messages, sums
/// and updates, each waiting for what it needs. Tickets count the planner's starts, so that they agree on all
/// ranks.
class StretchWriter {
 public:
  StretchWriter(const Outline& outline, int rank);

  ListStretch write(const std::vector<PlannedStart>& starts);
  static std::int64_t bytes_of_move(const Outline& outline, const std::vector<int>& units);
  /// In how many parts the sum over data of a unit goes.
  static int parts_of_sum(const Outline& outline, const UnitCost& unit);

 private:
  using Places = std::array<std::int64_t, 2>;  ///< of the messages of one crossing, counted from the list's
                                               ///< beginning; -1: none
  static constexpr Places none{-1, -1};

  /// What a slot's micro-batch has seen: places in the list.
  struct Slot {
    Places received = none, gradient = none;
    std::int64_t forward = -1, backward = -1;
  };
  /// Passes to one neighbour whose messages have not started, and the messages from each of two buffers.
  struct Ring {
    std::deque<std::int64_t> producers;
    std::array<Places, 2> sends{none, none};
    std::int64_t passes = 0, messages = 0;
  };

  Slot& slot(int number);
  std::int64_t place() const { return begin_ + static_cast<std::int64_t>(stretch_.actions.size()); }
  std::int64_t add(Action action, std::int64_t time);
  void wait_for(Action& action, std::int64_t earlier) const;
  void wait_for(Action& action, const Places& earlier) const;
  Action of_blocks(ActionKind kind, const PlannedStart& start) const;
  void pass(ActionKind kind, const PlannedStart& start);
  void wait_for_moves(Action& action);
  void message(const PlannedStart& start);
  void send(Action message, bool with_forward, int payload, std::int64_t time);
  void receive(Action message, bool with_forward, int payload, std::int64_t time);
  std::int64_t in_parts(Action action, std::int64_t bytes, int parts, std::int64_t time);
  std::int64_t reduce(const PlannedStart& start, std::int64_t bytes);
  void sum(const PlannedStart& start);
  void update(const PlannedStart& start);
  void shared_sum(const PlannedStart& start);
  void exchange(const PlannedStart& start);
  void shared_update(const PlannedStart& start);
  void move(const PlannedStart& start);

  const Outline& outline_;
  int rank_;
  bool comes_first_, comes_last_;  ///< of its lane's stages
  std::int64_t begin_ = 0;         ///< actions before the stretch
  std::int64_t tickets_ = 0;       ///< that were given
  ListStretch stretch_;
  std::vector<Slot> slots_;
  Ring forwards_, backwards_;
  std::map<int, std::vector<std::int64_t>>
      sums_;                                 ///< of each slab: parts of the newest user's sums over data
  std::int64_t last_backward_ = -1;          ///< whatever its subnet
  std::map<int, std::int64_t> shared_sums_;  ///< of each shared unit: the last part of its newest sum
  std::map<std::int64_t, std::vector<std::int64_t>> exchanged_;  ///< of each window: all that travels
  std::map<int, std::int64_t> touched_;  ///< of each unit that moves: its newest update, or departure, here
  std::map<std::int64_t, std::vector<std::int64_t>> moved_;  ///< of each reader: the last parts for it
  Places applied_ = none;  ///< of the newest two windows: the last of their updates
};

}  // namespace mindpipe
