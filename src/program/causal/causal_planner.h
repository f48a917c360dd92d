#pragma once
#include <functional>
#include <span>
#include <utility>

#include "core/check.h"
#include "program/causal/causal_rule.h"
#include "program/clock/clock.h"

namespace mindpipe {

/// Plans the work of subnets on a pipeline: the causal rule with a clock, which goes on as more subnets are
/// known. What it plans is a function of its inputs, alike on every rank.
class CausalPlanner {
 public:
  /// Begins with subnet `first`, a multiple of the window, as after a drain before it.
  CausalPlanner(const Outline& outline, const Network& network, SubnetRules rules, std::int64_t first = 0)
      : prices_(outline, network),
        rule_(outline, prices_, std::move(rules), first),
        clock_(outline.ranks(), network.unseen) {
    for (int rank = 0; rank < outline.ranks(); ++rank) clock_.touch(rank);
  }
  CausalPlanner(const CausalPlanner&) = delete;
  CausalPlanner& operator=(const CausalPlanner&) = delete;

  /// Calls begun(task) for all that can be decided without the next, unknown subnet, in the order of
  /// beginnings; with `last`, to the end. Units of tasks are kept until the next call. Throws where the rooms
  /// are too few and everything stands still.
  template <class Begun>
  void next(std::span<const Subnet> more, bool last, const Begun& begun) {
    rule_.add(more, last, clock_);
    if (!clock_.run(rule_, begun)) return;
    const std::string standstill = rule_.standstill();
    if (!standstill.empty())
      fail(Exit::internal,
           "everything stands still in the plan: {}. No plan should do this, so it is a mistake of the "
           "planner's: please report it with the run's config.yaml. Another supernet.admission, "
           "supernet.slots or supernet.prices makes another plan and changes no bit of the results",
           standstill);
  }

  /// Calls see(task) when a task ends: begun() is told when that is expected.
  void watch_ends(std::function<void(const Task&)> see) { clock_.watch_ends(std::move(see)); }

  /// Calls see(left) for each transfer that leaves a port.
  void watch_ports(std::function<void(const Ports::Left&)> see) { clock_.watch_ports(std::move(see)); }

  std::int64_t time() const { return clock_.now(); }
  std::int64_t oldest() const { return rule_.subnets().oldest(); }  ///< subnet that has not ended
  std::int64_t known() const { return rule_.subnets().known(); }    ///< how many it has heard of
  /// The most rooms that were ever taken on a stage of any lane.
  int most_slots(int stage) const { return rule_.rooms().most_slots(stage); }
  int most_slabs(int stage) const { return rule_.rooms().most_slabs(stage); }
  /// How long a rank has stood idle before something that began there.
  const TimesByReason& idle(int rank) const { return clock_.idle(rank); }

 private:
  PriceList prices_;
  CausalRule rule_;
  Clock clock_;
};

}  // namespace mindpipe
