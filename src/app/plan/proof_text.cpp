#include "app/plan/proof_text.h"

#include <numeric>

#include "app/plan/grid_choice.h"
#include "core/clock.h"
#include "core/text.h"
#include "plan/network_on_paper.h"
#include "program/lists/stretches.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

std::string line_of(const std::string& gradients, std::int64_t micro_batches, const char* verb, int ranks,
                    double seconds) {
  return fmt::format(
      "every gradient of {} is the sum of its {} micro-batch{}, each once, in the tree of one rank; {} "
      "for {} rank{} in {}",
      gradients, micro_batches, micro_batches == 1 ? "" : "es", verb, ranks, ranks == 1 ? "" : "s",
      human_seconds(seconds));
}

/// Plans and proves the lists that all ranks begin with; gives back the seconds that this took.
double prove_first_subnets(const Config& config, const RunPlan& plan, std::span<const Subnet> subnets) {
  std::vector<int> ranks(plan.outline.ranks());
  std::iota(ranks.begin(), ranks.end(), 0);
  Stretches lists(plan.outline, network_on_paper(config), plan.subnets->paper.rules, ranks);
  const std::int64_t begin = now_ns();
  lists.next(subnets, true);
  return seconds_since(begin);
}

}  // namespace

std::string proof_text(const Config& config, const RunPlan& plan) {
  if (plan.purpose == Purpose::reading) return "";
  constexpr std::size_t most_subnets = 64;
  const Outline& outline = plan.outline;
  const int ranks = ranks_of_grid(config);
  const std::int64_t micro_batches = std::int64_t{outline.micro_batches} * outline.data;
  if (plan.subnets) {
    std::vector<Subnet> subnets = first_subnets(config);
    if (subnets.size() > most_subnets) subnets.resize(most_subnets);
    return line_of(fmt::format("the first {} subnets", subnets.size()), micro_batches, "planned and proved",
                   ranks, prove_first_subnets(config, plan, subnets));
  }
  int units = 0;
  for (const UnitCost& unit : outline.units) units += unit.values > 0 ? 1 : 0;
  return line_of(fmt::format("{} unit{}", units, units == 1 ? "" : "s"), micro_batches, "proved", ranks,
                 plan.training.proved_seconds);
}

}  // namespace mindpipe
