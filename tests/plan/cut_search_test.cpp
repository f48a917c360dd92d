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

/// By how much cuts that are found are longer than the best of all, and how many were simulated.
struct Regret {
  double mean = 0, worst = 0;
  int simulated = 0;
};

TEST(CutSearch, FindsTheBestOfFewCutsAndComesNearThatOfMany) {
  constexpr int instances = 300;
  std::mt19937 random(9);
  Network network;
  network.message.picoseconds_per_byte = 1000;
  Regret of_few, of_many;
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
    const std::vector<int> begin = bound.improved(balanced_cuts(passes, outline.stages));
    double best = step_with(begin);
    for (const std::vector<int>& other : every_cut(outline.all_blocks(), outline.stages, few_cuts))
      best = std::min(best, step_with(other));
    for (const auto& [found, few] : {std::pair(&of_few, few_cuts), {&of_many, std::size_t{0}}}) {
      const CutCosts costs{[&](const std::vector<int>& cut) { return static_cast<double>(bound.of(cut)); },
                           [&, regret = found](const std::vector<int>& cut) {
                             ++regret->simulated;
                             return step_with(cut);
                           }};
      const double off = step_with(cheap_cuts(begin, step_with(begin), costs, 60, few)) / best - 1;
      found->mean += off / instances;
      found->worst = std::max(found->worst, off);
    }
  }
  for (const Regret& found : {of_few, of_many})
    std::cout << instances << " models: " << 100 * found.mean
              << " % longer than with the best cuts, at worst " << 100 * found.worst << " %, "
              << found.simulated << " steps simulated\n";
  EXPECT_EQ(of_few.worst, 0);
  EXPECT_LE(of_many.mean, 0.001);
  EXPECT_LE(of_many.worst, 0.05);
  EXPECT_LT(of_few.simulated + of_many.simulated, 10 * instances) << "bounds leave most out";
}

}  // namespace
}  // namespace mindpipe
