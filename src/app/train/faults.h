#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "app/run/injection.h"
#include "app/run/run.h"

namespace mindpipe {

/// Lets the faults that the command line asked for happen to this rank, each once or as often as it says.
class Faults {
 public:
  /// Refuses faults of ranks, or of messages, that there are none of. `begun`: steps, or subnets, that
  /// earlier starts have done, whose faults have happened.
  Faults(Run& run, std::int64_t begun);

  /// Lets happen what is due as a step (from 0), or a subnet, begins that sees the batch from `first_sample`
  /// on. A gradient that is not finite comes with the samples, wherever they are seen: bad data stay bad. Of
  /// several lanes each begins some of the subnets, and what is due comes with the next of them.
  void before(std::int64_t step, std::int64_t first_sample);
  /// Lets bits change that are due behind so many steps, before anybody looks at them.
  void behind(std::int64_t steps);

 private:
  void slow_down();
  void let_happen(const std::function<bool(const Injection&)>& is_due);
  void happen(const Injection& injection);
  /// What a bit of is to be flipped, if the place is one of this rank's.
  Tensor element_of(const Injection& injection);

  Run& run_;
  std::vector<Injection> due_;  ///< faults of this rank that have not happened, or happen again
  bool flips_ = false;          ///< whether a bit of some rank is flipped, in values that are whole
  bool has_lanes_;
};

}  // namespace mindpipe
