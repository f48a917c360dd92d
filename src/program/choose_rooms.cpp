#include "program/choose_rooms.h"

#include <algorithm>

#include "core/check.h"
#include "program/causal/causal_planner.h"
#include "program/fewest.h"

namespace mindpipe {
namespace {

/// Slots of a stage for the oldest subnet; in a group that is updated together for another one besides, since
/// the oldest has not ended before all of them have passed.
int least_slots(const Outline& outline, SubnetOrder order) {
  return (order == SubnetOrder::bulk ? 2 : 1) * outline.micro_batches;
}

class RoomSearch {
 public:
  RoomSearch(const Outline& outline, const Network& network, const RoomWishes& wishes,
             std::span<const Subnet> subnets)
      : outline_(outline), network_(network), wishes_(wishes), subnets_(subnets) {}

  std::int64_t with_all_rooms() {
    rules_.order = wishes_.order;
    rules_.window = wishes_.window;
    rules_.admission = std::max(wishes_.admission, 2 * outline_.ranks());
    return hold_back_or_not();
  }

  RoomsOnPaper run() {
    const std::int64_t with_all = with_all_rooms();
    if (wishes_.admission > 0) rules_.admission = wishes_.admission;
    else
      rules_.admission =
          fewest(outline_.ranks(), rules_.admission, Search::halving, {with_all}, [&](int admission) {
            rules_.admission = admission;
            return simulated().time;
          });
    choose_slabs(with_all);
    choose_slots(with_all);
    RoomsOnPaper found = simulated();
    found.with_all = with_all;
    price_window(found);
    return found;
  }

 private:
  RoomsOnPaper simulated() const { return simulate_rooms(outline_, network_, rules_, subnets_); }

  std::int64_t hold_back_or_not() {
    const std::int64_t without = simulated().time;
    rules_.holds_back = true;
    const std::int64_t with = simulated().time;
    rules_.holds_back = with < without;
    return std::min(with, without);
  }

  /// Begins with what all stages would take, and as much as is kept for the oldest subnet; then each stage
  /// gives up what it can, the first, which has the most, before the others.
  void choose_slots(std::int64_t with_all) {
    if (wishes_.slots > 0) {
      rules_.slots.assign(outline_.stages, wishes_.slots);
      return;
    }
    CausalPlanner planner(outline_, network_, rules_);
    planner.next(subnets_, true, [](const Task&) {});
    for (int stage = 0; stage < outline_.stages; ++stage)
      rules_.slots.push_back(planner.most_slots(stage) + outline_.micro_batches);
    for (int& slots : rules_.slots)
      slots = fewest(least_slots(outline_, rules_.order), slots, Search::halving, {with_all}, [&](int count) {
        slots = count;
        return simulated().time;
      });
  }

  /// What it costs to wait for versions of what all share.
  void price_window(RoomsOnPaper& found) {
    const std::int64_t own = rules_.window, all = static_cast<std::int64_t>(subnets_.size());
    found.without_window = found.time;
    found.free_window = own;
    if (own == 0) return;
    const auto time_with = [&](std::int64_t window) {
      rules_.window = window;
      const std::int64_t time = simulated().time;
      rules_.window = own;
      return time;
    };
    found.without_window = std::min(found.time, time_with(std::max(own, all)));
    const LittleLonger bound{found.without_window};
    while (!bound.holds(time_with(found.free_window))) found.free_window *= 2;
  }

  void choose_slabs(std::int64_t with_all) {
    int least = group_of_bulk(outline_), most = least;
    if (wishes_.order != SubnetOrder::bulk) {
      CausalPlanner planner(outline_, network_, rules_);
      planner.next(subnets_, true, [](const Task&) {});
      least = most = 1;
      for (int stage = 0; stage < outline_.stages; ++stage)
        most = std::max(most, planner.most_slabs(stage) + 1);
    }
    const int slabs = fewest(least, most, Search::halving, {with_all}, [&](int count) {
      rules_.slabs.assign(outline_.stages, count);
      return simulated().time;
    });
    rules_.slabs.assign(outline_.stages, slabs);
  }

  const Outline& outline_;
  const Network& network_;
  const RoomWishes& wishes_;
  std::span<const Subnet> subnets_;
  SubnetRules rules_;
};

}  // namespace

RoomsOnPaper simulate_rooms(const Outline& outline, const Network& network, const SubnetRules& rules,
                            std::span<const Subnet> subnets,
                            const std::function<void(const Ports::Left&)>& watch_ports) {
  CausalPlanner planner(outline, network, rules);
  if (watch_ports) planner.watch_ports(watch_ports);
  RoomsOnPaper found{.rules = rules};
  found.busy.resize(outline.ranks());
  std::int64_t home = -1;  // when units begin to go there, once all else has ended
  planner.next(subnets, true, [&](const Task& task) {
    const bool goes_home = task.owner.of == Owner::drain;
    if (goes_home && home < 0) home = task.start;
    if (task.kind == TaskKind::move) {
      (goes_home ? found.home : found.moved) += move_of(outline, task.units).bytes;
      if (!goes_home) ++found.moves;
    }
    const bool is_pass = task.kind == TaskKind::forward || task.kind == TaskKind::backward;
    if (is_pass) found.one_stage += task.lasts;
    if (is_pass || task.kind == TaskKind::update) found.busy[task.rank] += task.lasts;
  });
  found.time = home < 0 ? planner.time() : home;
  found.until_home = planner.time() - found.time;
  found.subnets = static_cast<std::int64_t>(subnets.size());
  for (int rank = 0; rank < outline.ranks(); ++rank) found.idle.push_back(planner.idle(rank));
  return found;
}

std::int64_t time_with_all_rooms(const Outline& outline, const Network& network, const RoomWishes& wishes,
                                 std::span<const Subnet> subnets) {
  return RoomSearch(outline, network, wishes, subnets).with_all_rooms();
}

RoomsOnPaper choose_rooms(const Outline& outline, const Network& network, const RoomWishes& wishes,
                          std::span<const Subnet> subnets) {
  const int least = least_slots(outline, wishes.order);
  MP_REQUIRE(wishes.slots == 0 || wishes.slots >= least, Exit::bad_configuration,
             "supernet.slots is {}, but a subnet has {} micro-batches on a stage, and {} must find room for "
             "all of them (take at least {}, or auto)",
             wishes.slots, outline.micro_batches,
             wishes.order == SubnetOrder::bulk ? "two of a group" : "the oldest one", least);
  MP_REQUIRE(
      wishes.order != SubnetOrder::bulk || wishes.admission == 0 ||
          wishes.admission >= group_of_bulk(outline),
      Exit::bad_configuration,
      "supernet.admission is {}, but schedule bulk updates groups of {} subnets together, one for each "
      "stage (take at least {}, or auto)",
      wishes.admission, group_of_bulk(outline), group_of_bulk(outline));
  return RoomSearch(outline, network, wishes, subnets).run();
}

}  // namespace mindpipe
