// thorough
#include "plan/cut_search.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/step_bound.h"
#include "program/partition.h"
#include "program/sample_outline.h"

namespace mindpipe {
namespace {

/// Up to twelve unequal blocks on two to four stages, with messages of up to half a block.
Outline unequal_blocks(std::mt19937& random) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const int stages = 2 + below(3), blocks = stages + 2 + below(11 - stages);
  Outline outline = equal_stages(1, 1 + below(16), 1, {}, blocks);
  outline.stages = stages;
  outline.rank_of_chunk = looped_chunks(stages, 1);
  for (auto& candidates : outline.blocks) {
    BlockCost& cost = candidates[0];
    cost.forward = 1000 + below(9000);
    cost.backward = 2 * cost.forward + below(2000);
  }
  const int percent = below(51);
  for (BoundaryBytes& cut : outline.cuts)
    cut.activation = cut.gradient = std::max(1, 55 * percent);  // of 5500, a mean forward
  return outline;
}

/// By how much of the best of all cuts those that are found are longer, and how many were simulated.
struct Regret {
  double mean = 0, worst = 0;
  int simulated = 0;
};

constexpr int instances = 300;

/// `looks_at_all`: there are few; else as if there were too many to look at each.
Regret regret_of(bool looks_at_all) {
  std::mt19937 random(9);
  Network network;
  network.message.picoseconds_per_byte = 1000;
  Regret found;
  for (int instance = 0; instance < instances; ++instance) {
    Outline outline = unequal_blocks(random);
    const auto step_with = [&](const std::vector<int>& cuts) {
      outline.first_block = cuts;
      const Order order = order_of_step(outline, ScheduleKind::one_forward_one_backward, network);
      return static_cast<double>(plan_step(outline, order, network).expected.step);
    };
    std::vector<std::int64_t> passes;
    for (int block = 0; block < outline.all_blocks(); ++block)
      passes.push_back(outline.cost(block).forward + outline.cost(block).backward);
    const StepBound bound(outline, network, false);
    std::vector<int> cuts = bound.improved(balanced_cuts(passes, outline.stages));
    const CutCosts costs{[&](const std::vector<int>& cut) { return static_cast<double>(bound.of(cut)); },
                         [&](const std::vector<int>& cut) {
                           ++found.simulated;
                           return step_with(cut);
                         }};
    cuts = cheap_cuts(cuts, step_with(cuts), costs, 60, looks_at_all ? few_cuts : 0);
    double best = step_with(cuts);
    const double taken = best;
    for (const std::vector<int>& other : every_cut(outline.all_blocks(), outline.stages, few_cuts))
      best = std::min(best, step_with(other));
    found.mean += (taken / best - 1) / instances;
    found.worst = std::max(found.worst, taken / best - 1);
  }
  std::cout << "300 models: " << 100 * found.mean << " % longer than with the best cuts, at worst "
            << 100 * found.worst << " %, " << found.simulated << " steps simulated\n";
  return found;
}

TEST(CutSearch, FindsTheBestOfFewCuts) {
  const Regret found = regret_of(true);
  EXPECT_LE(found.mean, 0.0001);
  EXPECT_LE(found.worst, 0.01);
  EXPECT_LT(found.simulated, 15 * instances) << "bounds leave most out";
}

TEST(CutSearch, ComesNearTheBestOfMany) {
  const Regret found = regret_of(false);
  EXPECT_LE(found.mean, 0.001);
  EXPECT_LE(found.worst, 0.05);
  EXPECT_LT(found.simulated, 15 * instances);
}

}  // namespace
}  // namespace mindpipe
