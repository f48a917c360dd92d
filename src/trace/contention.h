#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/traffic_class.h"
#include "trace/port_transfers.h"

namespace mindpipe {

/// What transfers of one class lose while those of another are under way at their ranks.
struct Contention {
  TrafficClass waits = TrafficClass::pipeline, holds = TrafficClass::gradients;
  double share = 0;  ///< seconds lost in each second beside the other; 0: the rule of ports says them
};

/// Fits what transfers take beyond equal ones that meet no other to the time in which others are under way at
/// their ranks, and to the time in which a rank of theirs computes: on processors a message moves only when
/// its rank looks, which is neither a link's fault nor another class's. What transfers of a class wait for
/// each other at ports (PortTransfers) is taken out before.
class ContentionFit {
 public:
  ContentionFit(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured);

  /// The pairs that the rule of ports explains, or that are sure beyond noise.
  const std::vector<Contention>& found() const { return found_; }
  /// What transfers that are equal to a receive or a sum take where they meet nobody; 0: none is known.
  std::int64_t usual(int action) const { return usual_[action]; }
  /// Whether the rule of ports explains nearly all that transfers took beyond that.
  bool goes_by_rule() const { return goes_by_rule_; }
  /// What a receive or a sum waited at ports by that rule: where it does not explain nearly all, what
  /// messages waited for each other.
  std::int64_t waited_by_rule(std::size_t step, int action) const { return by_rule_.waits.all[step][action]; }
  /// What a receive or a sum lost beside transfers of another class, if shares of time beside the other say
  /// so.
  std::int64_t lost(std::size_t step, int action, TrafficClass beside) const;
  /// The transfers, as they go to ports: each takes what equal ones take where they meet nobody.
  PortTransfers transfers() const { return {trace_, graph_, usual_, by_rule_.latency}; }

 private:
  static constexpr std::array classes{TrafficClass::pipeline, TrafficClass::gradients, TrafficClass::values};
  /// Which transfers say what equal ones take that meet nobody.
  enum class Guess : std::uint8_t { shortest, middle, behind_own };
  /// Seconds beside each class, and beside a pass.
  using Beside = std::array<float, classes.size() + 1>;
  /// Bytes, rank and peer: transfers that take the same; a slow link is its own measure. Rank -1: on all.
  using Equal = std::tuple<std::int64_t, int, int>;

  /// What transfers took beyond what is usual, and how far off that the rule of ports is, in all.
  struct ByRule {
    double latency = 0;  ///< share of what transfers take
    PortWaits waits;
    double took = 0, off = 0;
  };

  /// How what equal transfers take goes to what it may be.
  struct Step {
    double from = 0, to = 0, by = 0, part = 0.5;
  };

  static std::size_t place_of(TrafficClass traffic) {
    return static_cast<std::size_t>(std::find(classes.begin(), classes.end(), traffic) - classes.begin());
  }
  Equal equal_to(int action, Guess guess) const {
    const Action& what = graph_.at(action);
    const bool on_all = guess == Guess::shortest && is_collective(what);
    return {about_.at(what.bytes), on_all ? -1 : graph_.rank_of(action), what.peer};
  }
  template <class See>
  void each_of(TrafficClass waits, const See& see) const;
  void find_overlaps();
  void find_usual(TrafficClass waits, Guess guess);
  ByRule best_by_rule(std::optional<TrafficClass> one) const;
  void forget_waits();
  void take_waits_off(std::map<Equal, Step>& steps);
  void find_waits();
  void find_waits_of_messages();
  void find_pairs_by_rule(TrafficClass waits);
  void fit(TrafficClass waits);
  std::int64_t excess(std::size_t step, int action) const;

  const StepTrace& trace_;
  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  std::map<std::int64_t, std::int64_t> about_;  ///< bytes of transfers: the least that are about as many
  std::vector<std::vector<Beside>> beside_;     ///< [step][action], in nanoseconds
  ByRule by_rule_;
  std::vector<std::int64_t> usual_;  ///< by action
  bool goes_by_rule_ = false;
  std::array<std::vector<double>, classes.size()> share_;  ///< what each class loses beside each, and a pass
  std::vector<Contention> found_;
};

}  // namespace mindpipe
