#include "trace/link_delays.h"

#include <algorithm>
#include <set>

#include "core/middle.h"
#include "trace/rank_speeds.h"

namespace mindpipe {

LinkDelays::LinkDelays(const ReplayGraph& graph, const ReplayTimes& measured, const Durations& paper)
    : graph_(graph), measured_(measured), paper_(paper) {
  std::map<std::int64_t, std::map<StageLink, std::vector<int>>> messages, of_shared_units;
  for (int action = 0; action < graph.actions(); ++action) {
    const Action& what = graph.at(action);
    if (what.kind != ActionKind::receive) continue;
    if (crosses_cut(what)) messages[what.bytes][link_of(action)].push_back(action);
    else if (what.payload == Payload::unit_gradient)
      of_shared_units[what.bytes][link_of(action)].push_back(action);
  }
  for (const auto& [bytes, links] : messages) compare_links(links, ratios_);
  std::map<StageLink, std::vector<double>> unheard;
  for (const auto& [bytes, links] : of_shared_units) compare_links(links, unheard);
}

StageLink LinkDelays::link_of(int receive) const {
  const Coord at = coord_at(graph_.grid(), graph_.rank_of(receive));
  const int peer = graph_.at(receive).peer;
  return {std::min(at.pipeline, peer), std::max(at.pipeline, peer),
          at.data * graph_.grid().tensor + at.tensor};
}

void LinkDelays::compare_links(const std::map<StageLink, std::vector<int>>& links,
                               std::map<StageLink, std::vector<double>>& ratios) {
  std::set<std::pair<int, int>> pairs;
  for (const auto& [link, receives] : links) pairs.insert({link.from, link.to});
  for (std::size_t step = 0; step < measured_.rows.size(); ++step) {
    std::map<StageLink, double> took;
    std::vector<double> all;
    for (const auto& [link, receives] : links) {
      std::vector<double> times;
      for (const int receive : receives)
        times.push_back(static_cast<double>(measured_.rows[step].lasts[receive]));
      all.push_back(took[link] = median_of(times));
    }
    double peers = pairs.size() >= 3 || links.size() >= 3 ? lower_middle(all) : 0;
    if (peers <= 0 && !paper_.empty()) {
      const int receive = links.begin()->second.front();
      peers = static_cast<double>(paper_[graph_.stage_of(receive)][graph_.index_of(receive)]);
    }
    if (peers <= 0) continue;
    for (const auto& [link, time] : took) {
      std::vector<double>& of_steps = ratios[link];
      of_steps.resize(measured_.rows.size(), 0);
      of_steps[step] = std::max(of_steps[step], time / peers);
      for (const int receive : links.at(link)) usual_[receive] = peers;
    }
  }
}

}  // namespace mindpipe
