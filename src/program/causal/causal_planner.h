#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/kinds.h"
#include "program/causal/subnets_in_flight.h"
#include "program/clock/idle_clock.h"
#include "program/clock/simulate.h"
#include "program/lists/rooms.h"

namespace mindpipe {

/// When a subnet's forward may read a unit: after all older users have updated it; with the other subnets of
/// its group of as many as there are stages, whose updates come together; or at any time.
enum class SubnetOrder : std::uint8_t { causal, bulk, free };
/// The order that a schedule of subnets stands for.
inline SubnetOrder order_of(ScheduleKind schedule) {
  return schedule == ScheduleKind::bulk   ? SubnetOrder::bulk
         : schedule == ScheduleKind::free ? SubnetOrder::free
                                          : SubnetOrder::causal;
}

/// How a supernet is trained on a pipeline, beside what an outline says.
struct SubnetRules {
  SubnetOrder order = SubnetOrder::causal;
  int admission = 1;  ///< subnets from the oldest that has not ended on that may be in flight
  std::vector<int> slots =
      {};  ///< of each stage, for micro-batches in flight; none: as many as are asked for
  std::vector<int> slabs = {};  ///< of each stage, for gradients of subnets
  bool keeps_slots = true;      ///< for the oldest subnet; without them all may stand still
  bool keeps_slab = true;       ///< for the oldest subnet, too
  std::int64_t window = 0;      ///< subnets that read one version of what all share; 0: nothing is shared
  /// Whether a stage begins no forward while a backward is known to arrive within a quarter of its time.
  bool holds_back = false;
  /// For tests, not 0: what goes first of all that may run is drawn, not the oldest subnet's. Any such order
  /// gives the same bits. How long stretches are is then a part of the plan.
  std::uint64_t draws = 0;
};

/// What a planner has seen to start: an action of a rank, or a message that leaves it.
struct PlannedStart {
  enum What : std::uint8_t {
    forward,
    backward,
    update,         ///< of all units that the subnet uses there
    message,        ///< between neighbours; its slot is the receiver's
    sum,            ///< over data, of one unit's gradient
    shared_sum,     ///< over data, of what a window adds to a unit that all share
    exchange,       ///< of that sum, with another rank of use
    shared_update,  ///< of all that the rank shares
    move,           ///< of units' states, to the rank of their next user
  };
  What what = forward;
  bool with_forward = true;  ///< which way a message travels
  int rank = 0, micro_batch = 0;
  int peer = -1;             ///< of an exchange or a move: where it goes
  int unit = -1, block = 0;  ///< of a sum or an exchange
  std::int64_t subnet =
      0;  ///< of what all share: the window; of a move: the reader, or the first behind a cut
  int first = 0, last = 0;  ///< of what runs on a rank: its subnet's blocks there; of a message: the cut
  int slot = -1, slab = -1;
  TensorSums sums = {};                  ///< inside a pass
  WaitReason waits = WaitReason::input;  ///< why the stage was idle before, if it was
  std::int64_t start = 0, end = 0;       ///< nanoseconds
  bool goes_home = false;                ///< of a move: before a cut
  std::vector<int> units = {};  ///< of a move: ascending; of an update where units move: those of the subnet
};

/// The order of subnets on a pipeline, as the simulator of its rule that can be resumed: what it has planned
/// once does not depend on how many subnets it knew. It is a function of its inputs, alike on every rank.
class CausalPlanner {
 public:
  /// Begins with subnet `first`, a multiple of the window, as after a cut before it.
  CausalPlanner(const Outline& outline, const Network& network, SubnetRules rules, std::int64_t first = 0);
  CausalPlanner(const CausalPlanner&) = delete;
  CausalPlanner& operator=(const CausalPlanner&) = delete;

  /// What starts before a subnet is needed that is not known yet, in the order of starts; with `last`, to the
  /// end. Throws where the rooms are too few and everything stands still.
  std::vector<PlannedStart> next(std::span<const Subnet> more, bool last);

  /// How long what starts on a stage lasts, where that is not what the outline says: the rule, deciding as it
  /// goes, on times that no table knows.
  using Lasts = std::function<std::int64_t(const PlannedStart& start, std::int64_t on_paper)>;
  void let_last(Lasts lasts) { lasts_ = std::move(lasts); }

  std::int64_t time() const { return now_; }
  std::int64_t oldest() const { return subnets_.oldest(); }  ///< subnet that has not ended
  std::int64_t known() const { return subnets_.known(); }    ///< how many it has heard of
  /// The most rooms that were ever taken on a stage of any lane.
  int most_slots(int stage) const;
  int most_slabs(int stage) const;
  /// How long a rank has stood idle before something that began there.
  const TimesByReason& idle(int rank) const { return ranks_[rank].idle.all(); }

 private:
  /// Messages from a rank to a neighbour, one after the other, through a ring of two buffers.
  struct Channel {
    std::deque<std::pair<std::int64_t, int>> waiting;  ///< subnet and micro-batch; the first is under way
    std::int64_t ends = -1;                            ///< when that arrives; -1: none is under way
    std::int64_t time = 0;
    bool is_full() const { return waiting.size() >= 2; }
  };
  /// What goes one behind the other: sums over data of a rank, exchanges with one peer. An end says how long
  /// it takes until it begins.
  struct Way {
    std::deque<PlannedStart> waiting;  ///< the first is under way, if one is
    bool is_taken = false;
  };
  /// A unit that all subnets share, on a rank that uses it.
  struct SharedUse {
    int unit = -1, block = 0;     ///< the first of its blocks there
    std::vector<int> peers = {};  ///< other ranks that use it
  };
  struct Rank {
    Rank(const SubnetRules& rules, int stage, int micro_batches);
    Rooms slots, slabs;
    Channel forwards, backwards;  ///< to the next stage of the lane, and to the one before
    Way sums;                     ///< over data
    bool busy = false, dirty = true;
    IdleClock idle;
    PlannedStart running;
    // Subnets with a forward, a backward, an update to begin, in order of ids.
    std::vector<std::int64_t> to_forward, to_backward, to_update;
    std::vector<std::int64_t> done;  ///< of a group that is updated together: their backwards have ended
    std::int64_t updated = 0;        ///< subnets
    // What all subnets share, where this rank uses it.
    std::vector<std::int64_t> passed;  ///< of each window: subnets whose backwards have ended
    std::vector<int> exchanged;        ///< of each window: sums that are here, exchanges that have ended
    std::int64_t applied = 0;          ///< windows
    std::vector<SharedUse> uses;
    std::int64_t shared_update = 0;  ///< nanoseconds
  };
  enum class Ending : std::uint8_t { pass, forward_message, backward_message, sum, exchange, move };
  struct Event {
    std::int64_t time = 0;
    std::int64_t order = 0;
    Ending ending = Ending::pass;
    int rank = 0, peer = 0;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  void find_what_is_shared();
  bool awaits_subnets() const;
  bool admit();
  bool decide(int rank);
  bool begin_update(int rank);
  bool begin_backward(int rank);
  /// False: it depends on a subnet that is not known yet.
  bool begin_forward(int rank);
  bool has_version(std::int64_t id, int rank) const;
  bool may_forward(std::int64_t id, int rank) const;
  bool holds_back(int rank, std::int64_t forward) const;
  std::size_t drawn(std::size_t count);
  void begin(int rank, PlannedStart start, std::int64_t time);
  void end(const Event& event);
  void end_pass(int rank);
  void end_forward(int rank, const PlannedStart& pass);
  void end_backward(int rank, const PlannedStart& pass);
  void end_update(int rank, const PlannedStart& update);
  void gradients_are_complete(std::int64_t id, int rank);
  void update_group(Rank& rank);
  void pass_window(std::int64_t id, int rank);
  void complete_window(std::int64_t window, int rank);
  void exchange(std::int64_t window, int rank, const SharedUse& use);
  void end_exchange(int from, int to);
  void end_shared_update(int rank);
  void count_exchanged(std::int64_t window, int rank);
  bool may_begin(const PlannedStart& transfer) const;
  void put(Way& way, PlannedStart transfer, std::int64_t time);
  void begin_next(Way& way);
  PlannedStart end_first(Way& way);
  void put_sums(std::int64_t id, int rank);
  void end_sum(int rank);
  void close();
  void send(Channel& channel, int rank, bool with_forward, std::int64_t id, int micro_batch);
  void start_message(Channel& channel, int rank, bool with_forward);
  void arrive(Channel& channel, int rank, bool with_forward);
  void at(std::int64_t time, Event event);
  std::int64_t window_size(std::int64_t window) const;
  std::int64_t window_size(std::int64_t window, int lane) const;
  std::int64_t in_lane(int lane, std::int64_t first, std::int64_t count) const;
  int expected(std::int64_t window, int rank) const;
  void queue_move(const UnitMove& move);
  void await_link(int from, int to);
  void start_move(int from, int to);
  void end_move(int from, int to);
  bool bring_home();
  std::int64_t group_of(std::int64_t id) const { return id / count_; }
  std::string awaited_by(std::int64_t id, int rank) const;
  [[noreturn]] void stands_still() const;

  const Outline& outline_;
  SubnetRules rules_;
  Lasts lasts_;
  PriceList prices_;
  int count_, micro_batches_;  ///< stages; of a subnet
  SubnetsInFlight subnets_;
  std::vector<Rank> ranks_;
  std::int64_t admitted_ = 0;
  std::int64_t begin_ = 0;  ///< the first subnet after the last cut
  bool last_ = false;
  std::int64_t now_ = 0, events_made_ = 0;
  std::uint64_t drawn_ = 0;    ///< numbers, where the order is drawn
  std::vector<Event> events_;  ///< a heap
  std::vector<PlannedStart> starts_;
  bool moves_ = false;  ///< units do, because there are lanes or cuts of subnets' own
  std::map<std::pair<int, int>, Way> exchanges_;                ///< from, to
  std::map<std::pair<int, int>, std::deque<UnitMove>> moving_;  ///< from, to
  std::map<int, std::deque<int>> leaving_;  ///< from: readers whose moves wait; the first one's is under way
};

}  // namespace mindpipe
