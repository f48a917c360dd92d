#pragma once
#include <algorithm>
#include <array>
#include <tuple>
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
/// its rank looks, which is neither a link's fault nor another class's. What messages wait for each other at
/// ports (waits_among_messages) is taken out before.
class ContentionFit {
 public:
  ContentionFit(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured);

  /// The pairs that are sure, beyond noise.
  const std::vector<Contention>& found() const { return found_; }
  /// What transfers that are equal to a receive or a sum take where they meet nobody; 0: none is known.
  std::int64_t usual(int action) const { return usual_[action]; }
  /// What a receive or a sum lost beside transfers of another class, if shares of time beside the other say
  /// so.
  std::int64_t lost(std::size_t step, int action, TrafficClass beside) const;

 private:
  static constexpr std::array classes{TrafficClass::pipeline, TrafficClass::gradients, TrafficClass::values};
  /// Seconds beside each class, and beside a pass.
  using Beside = std::array<float, classes.size() + 1>;
  /// Bytes, rank and peer: transfers that take the same; a slow link is its own measure.
  using Equal = std::tuple<std::int64_t, int, int>;

  static std::size_t place_of(TrafficClass traffic) {
    return static_cast<std::size_t>(std::find(classes.begin(), classes.end(), traffic) - classes.begin());
  }
  Equal equal_to(int action) const {
    return {graph_.at(action).bytes, graph_.rank_of(action), graph_.at(action).peer};
  }
  template <class See>
  void each_of(TrafficClass waits, const See& see) const;
  void find_overlaps();
  void find_usual(TrafficClass waits, double share);
  void take_out_own_waits(TrafficClass waits);
  void fit(TrafficClass waits);
  std::int64_t excess(std::size_t step, int action) const;

  const StepTrace& trace_;
  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  std::vector<std::vector<Beside>> beside_;                ///< [step][action], in nanoseconds
  std::vector<std::vector<std::int64_t>> own_waits_;       ///< [step][action]: for its own class
  std::vector<std::int64_t> usual_;                        ///< by action
  std::array<std::vector<double>, classes.size()> share_;  ///< what each class loses beside each, and a pass
  std::vector<Contention> found_;
};

}  // namespace mindpipe
