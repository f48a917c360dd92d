#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mindpipe {

/// Nanoseconds that a stage spent: work by kind, waits by what was waited for, and the steps as a whole.
struct TimeSpent {
  std::int64_t forward = 0, backward = 0, update = 0, scalars = 0;  ///< work, without the waits inside
  std::int64_t wait_pipeline = 0;  ///< waits for messages of other stages, a shared table's gradient too
  std::int64_t wait_data = 0;      ///< waits for sums and gathers of gradients and weights
  std::int64_t wait_tensor = 0;    ///< waits inside passes and updates for the ranks that share a product
  std::int64_t wait_copy = 0;      ///< waits for what is fetched or evicted
  std::int64_t wait_scalars = 0;   ///< waits inside the sum of scalars, where all ranks meet
  std::int64_t steps = 0;

  std::int64_t work() const { return forward + backward + update + scalars; }
  std::int64_t waiting() const { return wait_pipeline + wait_data + wait_tensor + wait_copy + wait_scalars; }
  /// Share of the steps in which the compute queue ran nothing; a tensor sum is a part of its pass.
  double bubble() const {
    return steps == 0 ? 0
                      : 1 - static_cast<double>(forward + backward + update + wait_tensor) /
                                static_cast<double>(steps);
  }
  bool operator==(const TimeSpent&) const = default;
};

/// Nanoseconds that a stage's compute queue waited between the actions of subnets, by what the planner says
/// it had to wait for: older subnets' updates of units, rooms, what comes from elsewhere; and for the plan.
struct SubnetWaits {
  std::int64_t owner = 0, room = 0, input = 0, plan = 0;
  bool operator==(const SubnetWaits&) const = default;
};

/// Table of times, a line for each stage, in percent of its steps, with the simulator's bubbles if given.
std::string table_of(const std::vector<TimeSpent>& stages, const std::vector<double>& expected);

/// Table of the times of stages that train subnets, in percent of all their time.
std::string table_of_subnets(const std::vector<TimeSpent>& ranks, const std::vector<SubnetWaits>& waits,
                             int stages);

}  // namespace mindpipe
