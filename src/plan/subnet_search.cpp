#include "plan/subnet_search.h"

#include <numeric>

#include "config/config.h"
#include "plan/lay_out.h"
#include "plan/moves_on_paper.h"
#include "plan/network_on_paper.h"
#include "plan/set_prices.h"
#include "supernet/sampler.h"

namespace mindpipe {

LayoutCandidate SubnetSketches::candidate(const Config& config, const LayoutChoice& layout) {
  const Config known = with_layout(config, layout);
  const auto key = std::tuple(known.grid.tensor, known.grid.data, known.train.micro_batch);
  auto found = known_.find(key);
  if (found == known_.end())
    found = known_.emplace(key, CostModel(known, make_layout(known, {})).outline()).first;
  Outline outline = found->second;
  if (const auto prices = prices_of(known)) set_prices(outline, *prices, known.grid.pipeline);
  lay_out(outline, known);
  const std::vector<Subnet> subnets = first_subnets(known);
  const std::int64_t all = time_with_all_rooms(outline, network_on_paper(known), wishes_of(known), subnets);
  constexpr std::int64_t percent = 98;
  return {.layout = layout, .bound = all / std::ssize(subnets) * percent / 100};
}

void take_figures(const Config& known, const RunPlan& plan, LayoutCandidate& candidate) {
  const RoomsOnPaper& paper = plan.subnets->paper;
  SubnetFigures& figures = candidate.subnets.emplace();
  const std::int64_t busy = std::accumulate(paper.busy.begin(), paper.busy.end(), std::int64_t{0});
  candidate.step = paper.time / paper.subnets;
  candidate.work = busy * plan.outline.data * known.grid.tensor / paper.subnets;
  figures.speed_up = paper.speed_up();
  const double all = static_cast<double>(paper.time) * static_cast<double>(paper.busy.size());
  figures.idle = 1 - static_cast<double>(busy) / all;
  for (const TimesByReason& rank : paper.idle)
    for (int reason = 0; reason < wait_reasons; ++reason)
      figures.because[reason] += static_cast<double>(rank[reason]) / all;
  figures.lost = lost_to_moves(known, plan);
  figures.ratio = move_ratio(plan.outline, network_on_paper(known));
}

}  // namespace mindpipe
