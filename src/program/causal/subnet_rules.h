#pragma once
#include <cstdint>
#include <vector>

#include "config/kinds.h"
#include "program/outline.h"

namespace mindpipe {

/// When a subnet's forward may read a unit: after all older users have updated it; with the other subnets of
/// its group, whose updates come together; or at any time.
enum class SubnetOrder : std::uint8_t { causal, bulk, free };
/// The order that a schedule of subnets stands for.
inline SubnetOrder order_of(ScheduleKind schedule) {
  return schedule == ScheduleKind::bulk   ? SubnetOrder::bulk
         : schedule == ScheduleKind::free ? SubnetOrder::free
                                          : SubnetOrder::causal;
}

/// Subnets whose updates come together in the order bulk.
inline int group_of_bulk(const Outline& outline) { return outline.stages; }

/// How a supernet is trained on a pipeline, beside what an outline says.
struct SubnetRules {
  SubnetOrder order = SubnetOrder::causal;
  int admission = 1;  ///< subnets from the oldest that has not ended on that may be in flight
  std::vector<int> slots =
      {};  ///< slots by stage, for micro-batches in flight; none: as many as are asked for
  std::vector<int> slabs = {};  ///< each stage's slabs, for gradients of subnets
  bool keeps_slots = true;      ///< for the oldest subnet; without them all may stand still
  bool keeps_slab = true;       ///< for the oldest subnet, too
  std::int64_t window = 0;      ///< subnets that read one version of what all share; 0: nothing is shared
  /// Whether a stage begins no forward while a backward is known to arrive within a quarter of its time.
  bool holds_back = false;
  /// For tests, not 0: what goes first of all that may run is drawn, not the oldest subnet's. Any such order
  /// gives the same bits. How long stretches are is then a part of the plan.
  std::uint64_t draws = 0;
};

}  // namespace mindpipe
