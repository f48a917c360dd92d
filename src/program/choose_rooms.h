#pragma once
#include <functional>
#include <span>

#include "program/causal/subnet_rules.h"
#include "program/clock/idle_clock.h"
#include "program/clock/simulate.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// What a configuration leaves to the planner.
struct RoomWishes {
  SubnetOrder order = SubnetOrder::causal;
  int admission = 0;        ///< 0: the fewest that cost at most 1 %
  int slots = 0;            ///< slots of every stage; 0: for each stage the fewest that cost at most 1 %
  std::int64_t window = 0;  ///< subnets that read one version of what all share
};

/// What a stream of subnets takes with some rules, on paper.
struct RoomsOnPaper {
  SubnetRules rules;
  std::int64_t time = 0;                  ///< nanoseconds
  std::int64_t with_all = 0;              ///< where rooms and admission bind nobody
  std::int64_t one_stage = 0;             ///< the sum of all passes: one stage that does everything
  std::int64_t subnets = 0;               ///< how many these were
  std::int64_t moves = 0, moved = 0;      ///< messages of units, and their bytes, but for those at drains
  std::int64_t home = 0, until_home = 0;  ///< bytes that go home at the end, and how long that takes
  std::vector<TimesByReason> idle = {};   ///< each rank's idle time, nanoseconds
  std::vector<std::int64_t> busy = {};    ///< each rank's passes and updates, nanoseconds
  /// Where no version of what all share is waited for; and the shortest window with which hardly any is.
  std::int64_t without_window = 0, free_window = 0;
  double speed_up() const { return static_cast<double>(one_stage) / static_cast<double>(time); }
  double seconds_each() const { return 1e-9 * static_cast<double>(time) / static_cast<double>(subnets); }
};

/// Finds, by simulating the rule on the first subnets of a stream, how many may be in flight, how many slots
/// and gradient slabs each stage needs, and whether forwards that stand before an arriving backward are held
/// back. Refuses fewer slots than a subnet has micro-batches.
RoomsOnPaper choose_rooms(const Outline& outline, const Network& network, const RoomWishes& wishes,
                          std::span<const Subnet> subnets);

/// Nanoseconds that the stream takes where no room binds anybody, from which choose_rooms goes out.
std::int64_t time_with_all_rooms(const Outline& outline, const Network& network, const RoomWishes& wishes,
                                 std::span<const Subnet> subnets);

/// What the stream takes with these rules. `watch_ports`: told of each transfer that leaves a port.
RoomsOnPaper simulate_rooms(const Outline& outline, const Network& network, const SubnetRules& rules,
                            std::span<const Subnet> subnets,
                            const std::function<void(const Ports::Left&)>& watch_ports = nullptr);

}  // namespace mindpipe
