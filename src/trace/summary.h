#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

/// Where a stage's time went, in nanoseconds: work by kind, waits by what was waited for, and the steps as a
/// whole.
struct TimeSpent {
  std::int64_t forward = 0, backward = 0, update = 0, scalars = 0;  ///< without the waits inside
  std::int64_t wait_pipeline =
      0;  ///< for a message of another stage, also for its part of a shared table's gradient
  std::int64_t wait_data = 0;     ///< for a sum or a gather of gradients and weights
  std::int64_t wait_tensor = 0;   ///< inside passes and updates, for the ranks that share a product
  std::int64_t wait_copy = 0;     ///< for something that is fetched or evicted
  std::int64_t wait_scalars = 0;  ///< inside the sum of scalars, where all ranks meet
  std::int64_t steps = 0;

  std::int64_t work() const { return forward + backward + update + scalars; }
  std::int64_t waiting() const { return wait_pipeline + wait_data + wait_tensor + wait_copy + wait_scalars; }
  /// The share of the steps in which the compute queue ran nothing; a tensor sum is a part of its pass.
  double bubble() const {
    return steps == 0 ? 0
                      : 1 - static_cast<double>(forward + backward + update + wait_tensor) /
                                static_cast<double>(steps);
  }
  bool operator==(const TimeSpent&) const = default;
};

/// What advice needs to know of a run besides its times.
struct RunFacts {
  int micro_batches = 1, data = 1, tensor = 1, chunks = 1;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  bool sharded_optimizer = false, own_cuts = false;
};

/// The table of times: a line for each stage, in percent of its steps. `expected`: the simulator's bubbles;
/// may be empty.
std::string table_of(const std::vector<TimeSpent>& stages, const std::vector<double>& expected);

/// What follows from the times: a sentence for each finding, what is found first and what to change after it.
std::vector<std::string> advice_on(const std::vector<TimeSpent>& stages, const RunFacts& facts);

}  // namespace mindpipe
