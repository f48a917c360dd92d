#pragma once
#include <array>
#include <vector>

#include "core/traffic_class.h"
#include "trace/replay_times.h"

namespace mindpipe {

/// What transfers of one class lose while those of another are under way at their ranks.
struct Contention {
  TrafficClass waits = TrafficClass::pipeline, holds = TrafficClass::gradients;
  double share = 0;  ///< seconds lost in each second beside the other
};

/// Fits what transfers take beyond equal ones that meet no other to the time in which others are under way at
/// their ranks, and to the time in which a rank of theirs computes: on processors a message moves only when
/// its rank looks, which is neither a link's fault nor another class's.
class ContentionFit {
 public:
  ContentionFit(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured);

  /// The pairs that are sure, beyond noise.
  const std::vector<Contention>& found() const { return found_; }
  /// What transfers that are equal to a receive or a sum take where they meet nobody; 0: none is known.
  std::int64_t usual(int action) const { return usual_[action]; }

 private:
  static constexpr std::array classes{TrafficClass::pipeline, TrafficClass::gradients, TrafficClass::values};
  /// Seconds beside each class, and beside a pass.
  using Beside = std::array<float, classes.size() + 1>;

  void find_overlaps(const StepTrace& trace, const ReplayTimes& measured);
  void fit(TrafficClass waits, const ReplayTimes& measured);

  const ReplayGraph& graph_;
  std::vector<std::vector<Beside>> beside_;  ///< [step][action], in nanoseconds
  std::vector<std::int64_t> usual_;          ///< by action
  std::vector<Contention> found_;
};

}  // namespace mindpipe
