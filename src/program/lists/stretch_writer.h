#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "program/clock/task.h"
#include "program/clock/transfer.h"
#include "program/lists/list_stretch.h"

namespace mindpipe {

/// Writes down, for one rank, what a planner has seen to start: its passes, both ends of its messages, sums
/// and updates, each waiting for what it needs. Tickets count the planner's starts, so that they agree on all
/// ranks.
class StretchWriter {
 public:
  /// `window`: subnets that read one version of what all share.
  StretchWriter(const Outline& outline, std::int64_t window, int rank);

  ListStretch write(const std::vector<Task>& starts);

 private:
  using Places = std::array<std::int64_t, 2>;  ///< of the messages of one crossing, counted from the list's
                                               ///< beginning; -1: none
  static constexpr Places none{-1, -1};

  /// What a slot's micro-batch has seen: places in the list.
  struct Slot {
    Places received = none, gradient = none;
    std::int64_t forward = -1, backward = -1;
  };
  /// Gradients that are summed: those in a slab, or what a window adds to what all share. Places in the list.
  struct Gradients {
    std::int64_t backward = -1;                ///< the newest that adds to them
    std::map<int, std::int64_t> sums = {};     ///< of each unit: the last part of its sum over data
    std::vector<std::int64_t> exchanged = {};  ///< what travels between ranks: last parts
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
  Action of_blocks(ActionKind kind, const Task& start) const;
  void pass(ActionKind kind, const Task& start);
  void wait_for_moves(Action& action);
  void message(const Task& start);
  void send(Action message, bool with_forward, int payload, std::int64_t time);
  void receive(Action message, bool with_forward, int payload, std::int64_t time);
  bool is_end(const Task& start, const Transfer& transfer);
  std::int64_t in_parts(Action action, const Transfer& transfer, std::int64_t time);
  void sum(const Task& start, bool of_window);
  void update(const Task& start);
  void exchange(const Task& start);
  void shared_update(const Task& start);
  void move(const Task& start);

  const Outline& outline_;
  std::int64_t window_;
  int rank_;
  std::vector<int> shared_;        ///< units that all subnets share, of the rank
  bool comes_first_, comes_last_;  ///< of its lane's stages
  std::int64_t begin_ = 0;         ///< actions before the stretch
  std::int64_t tickets_ = 0;       ///< that were given
  ListStretch stretch_;
  std::vector<Slot> slots_;
  Ring forwards_, backwards_;
  std::map<int, Gradients> slabs_;             ///< the newest user's
  std::map<std::int64_t, Gradients> windows_;  ///< that are not applied
  std::map<int, std::int64_t> touched_;  ///< of each unit that moves: its newest update, or departure, here
  std::map<std::int64_t, std::vector<std::int64_t>> moved_;  ///< of each reader: the last parts for it
  Places applied_ = none;  ///< of the newest two windows: the last of their updates
};

}  // namespace mindpipe
