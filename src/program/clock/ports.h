#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/port_rule.h"

namespace mindpipe {

/// What a transfer asks of the ports between its ends, in nanoseconds.
struct Load {
  std::int64_t takes = 0;    ///< time of each port
  std::int64_t latency = 0;  ///< once the in port has it; no port is held meanwhile
  Level level = Level::node;
  int calls = 1;  ///< messages that one part is made of, or a pass's sums
  /// In how many turns what takes ports so long goes there.
  int turns(std::int64_t part) const { return PortRule::turns(part, calls); }
  /// What a pass that lasts so long, with its sums, computes before one of so many turns of them.
  std::int64_t before_turn(int turn, int turns, std::int64_t pass) const {
    return of_turn(turn, turns, pass - takes - latency);
  }
  bool operator==(const Load&) const = default;
};

/// How long something takes where it meets no other, in nanoseconds, and what it asks of ports.
struct Price {
  std::int64_t lasts = 0;
  Load load = {};
};

/// A class of traffic that finds ports as if another class had no bytes, to say what that one costs it. All
/// others, the unseen one too, find ports as they are.
struct Unseen {
  TrafficClass by = TrafficClass::pipeline, what = TrafficClass::gradients;
  bool operator==(const Unseen&) const = default;
};

/// How transfers meet. Each rank has an out and an in port at each level. One transfer at a time leaves an
/// out port: the highest class first, then who came first, and nobody is interrupted. It streams into the in
/// port while it leaves, so it arrives late by no more than what others took of that port meanwhile:
///
///     arrived = max(left, min(in_free + takes, left + what others took while this one left))
class Ports {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  struct Transfer {
    TrafficClass traffic = TrafficClass::pipeline;
    Level level = Level::node;
    int from = 0, to = 0;    ///< alike: a group's, whose ranks all send and receive as this one does
    std::int64_t takes = 0;  ///< more than 0
    int number = 0;          ///< by which its owner knows it
    bool goes_on = false;    ///< true: another turn follows
    /// When its last turn is known to have left. It then takes so much more or less than said, if that is
    /// little.
    std::int64_t known_to_leave = never;
  };
  /// A transfer that has left, and when the in port has it.
  struct Left {
    Transfer transfer;
    std::int64_t offered = 0, left = 0, arrived = 0;
  };
  explicit Ports(const std::optional<Unseen>& unseen = {}) : unseen_(unseen) {}

  /// A transfer stands ready at the out port of its rank, to which it goes in so many turns.
  void offer(Transfer transfer, std::int64_t now, int turns = 1);
  /// Lets free out ports begin. Called when all is offered that comes at this moment, so that the order of
  /// offers within a moment decides nothing.
  void serve(std::int64_t now);
  /// When the next transfer leaves.
  std::int64_t next() const { return leaving_.empty() ? never : leaving_.front().left; }
  /// Lets that one leave. Several at one moment leave by class, from, to.
  Left leave();
  /// When a transfer of this class that is offered leaves, if nothing else is offered.
  std::int64_t expected(int from, Level level, TrafficClass traffic, int number, std::int64_t now) const;

 private:
  struct Waiting {
    Transfer transfer;
    std::int64_t offered = 0, order = 0;
  };
  struct Leaving : Waiting {
    std::int64_t left = 0;
    std::int64_t taken_before = 0;  ///< time that others had taken of the in port when it began
  };
  /// A port as some find it: all but one class find the same.
  struct View {
    int leaving = 0;  ///< transfers
    std::int64_t busy_until = 0;
    std::int64_t in_free = 0;  ///< when
    std::int64_t taken = 0;    ///< time of the in port that was taken so far
  };
  struct Port {
    std::vector<Waiting> waiting;
    bool is_touched = false;
    std::array<View, 2> views;  ///< what is there; what the class finds that does not see another
  };

  static bool is_before(const Waiting& a, const Waiting& b);
  static bool is_later(const Leaving& a, const Leaving& b);
  std::size_t place(int rank, Level level);
  void touch(std::size_t port);
  int view_of(TrafficClass traffic) const { return unseen_ && unseen_->by == traffic ? 1 : 0; }
  int views_with(TrafficClass traffic) const { return unseen_ && unseen_->what == traffic ? 1 : 2; }
  bool may_begin(const Port& port, TrafficClass traffic) const {
    return port.views[view_of(traffic)].leaving == 0;
  }
  bool begin_next(std::size_t port, std::int64_t now);
  static void set_known_end(Transfer& transfer, std::int64_t now);

  std::vector<Port> ports_;           ///< by rank, then level
  std::vector<Leaving> leaving_;      ///< a heap
  std::vector<std::size_t> touched_;  ///< ports that may begin
  std::int64_t offers_ = 0;
  std::optional<Unseen> unseen_;
};

/// What of a transfer has left its port so far, turn by turn.
struct TurnsLeft {
  std::int64_t left = 0;     ///< when the newest did, if another one follows
  std::int64_t arrived = 0;  ///< when the in port has them all
  /// Notes the next one, which does not wait for those before it.
  void add(Ports::Left& turn) {
    turn.offered = std::max(turn.offered, left);
    left = turn.transfer.goes_on ? turn.left : 0;
    arrived = std::max(arrived, turn.arrived);
  }
};

}  // namespace mindpipe
