#pragma once
#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "program/make_program.h"

namespace mindpipe {

/// Lets what a counted memory only imitates take the time that the simulator says: messages and sums are
/// empty there. Elsewhere it paces nothing.
class Pacer {
 public:
  Pacer() = default;
  Pacer(const PlannedStep& plan, int rank) {
    const std::vector<Action>& list = plan.program.ranks[rank];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Span& span = plan.expected.spans[rank][i];
      times_.push_back(list[i].sums > 0 ? plan.network.tensor_time(list[i]) : span.end - span.start);
    }
  }
  bool paces() const { return !times_.empty(); }
  /// How long an action's message or sum takes; of a pass, its tensor sums together.
  std::int64_t time_of(int action) const { return times_[action]; }

 private:
  std::vector<std::int64_t> times_;
};

}  // namespace mindpipe
