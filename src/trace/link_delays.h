#pragma once
#include <map>
#include <vector>

#include "trace/work_model.h"

namespace mindpipe {

/// A link between two stages, in one replica or (-1) in all.
struct StageLink {
  int from = 0, to = 0, replica = -1;
  auto operator<=>(const StageLink&) const = default;
};

/// How long messages between stages travel, once both ends have come, beside those of the other links; or
/// beside paper, where there are too few links. Gradients of units that stages share take the same links, and
/// wait for more than these: they say what is usual, and not how slow a link is.
class LinkDelays {
 public:
  LinkDelays(const ReplayGraph& graph, const ReplayTimes& measured, const Durations& paper);

  StageLink link_of(int receive) const;
  /// How many times as long as usual each link takes, in each step.
  const std::map<StageLink, std::vector<double>>& ratios() const { return ratios_; }
  /// What receives usually take, by action.
  const std::map<int, double>& usual() const { return usual_; }

 private:
  void compare_links(const std::map<StageLink, std::vector<int>>& links,
                     std::map<StageLink, std::vector<double>>& ratios);

  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  const Durations& paper_;
  std::map<StageLink, std::vector<double>> ratios_;
  std::map<int, double> usual_;
};

}  // namespace mindpipe
