// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "plan/layout_trial.h"
#include "plan/memory_limits.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"
#include "runtime/small_models.h"

// Which tapes are kept, made again or swapped, where memory is short.
namespace mindpipe {
namespace {

constexpr SearchFreedom tapes_free{.recompute = true, .swap = true};

/// How many chains of blocks are tried: MINDPIPE_CHAINS, or a few.
int chains_wished() {
  const char* wish = std::getenv("MINDPIPE_CHAINS");
  return wish == nullptr ? 20 : std::atoi(wish);
}

/// Blocks of a small GPT on two to four stages, with copies that take from a tenth to twice of a stage's
/// passes.
Config chain(std::mt19937& random) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  Config c = gpt2_style();
  c.model.gpt.layers = 3 + below(2);
  c.grid = {1, 2 + below(3), 1, 1};
  c.train.micro_batch = 1 + below(3);
  c.train.batch = c.train.micro_batch * (2 + below(10));
  c.reproducible = {1, 1};
  c.device.kind = DeviceKind::emulated;
  c.device.description = "core";
  c = resolve(c);
  CostModel costs(c, make_layout(c, {}));
  Outline outline = costs.outline();
  std::int64_t time = 0, bytes = 0;
  for (int block = 0; block < outline.all_blocks(); ++block) {
    time += outline.cost(block).forward + outline.cost(block).backward;
    bytes += outline.cost(block).saved;
  }
  const double rho = 0.1 + 1.9 * below(1000) / 1000;
  c.device.links.copies = static_cast<double>(bytes) / (rho * static_cast<double>(time) * 1e-9);
  return resolve(c);
}

std::int64_t memory_with(Config c, WhichBlocks again) {
  c.train.recompute = again;
  const RunPlan plan = make_run_plan(c);
  std::int64_t most = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, total_of(plan.most_memory(stage)));
  return most;
}

/// The shortest step of all choices for all blocks that fits; 0: none fits.
std::int64_t best_of_all(const Config& config) {
  PricedBlocks blocks;
  const Outline kept = blocks.laid_out(config);
  Config computed = config;
  computed.train.recompute = WhichBlocks::block;
  const Outline again = blocks.laid_out(computed);
  std::vector<int> can;
  for (int block = 0; block < kept.all_blocks(); ++block)
    if (again.cost(block).backward > kept.cost(block).backward) can.push_back(block);
  std::vector<LayoutCandidate> all;
  int choices = 1;
  for (std::size_t i = 0; i < can.size(); ++i) choices *= 3;
  Config unlimited = config;
  unlimited.memory.device_limit = 0;
  for (int choice = 0; choice < choices; ++choice) {
    std::vector<int> recomputed, swapped;
    for (int i = 0, rest = choice; i < std::ssize(can); ++i, rest /= 3) {
      if (rest % 3 == 1) recomputed.push_back(can[i]);
      if (rest % 3 == 2) swapped.push_back(can[i]);
    }
    LayoutCandidate& one = all.emplace_back();
    one.layout = layout_of(config);
    one.layout.recompute = ChosenBlocks(recomputed);
    one.layout.swap = ChosenBlocks(swapped);
    time_layout(unlimited, one, blocks, {}, 0);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const LayoutCandidate& a, const LayoutCandidate& b) { return a.step < b.step; });
  for (LayoutCandidate& one : all) {
    if (one.fate != LayoutCandidate::Fate::simulated) continue;
    simulate_layout(config, one);
    if (one.fate == LayoutCandidate::Fate::simulated) return one.step;
  }
  return 0;
}

TEST(TapeSearch, IsNearTheBestOfAllChoices) {
  std::mt19937 random(11);
  const int chains = chains_wished();
  int beyond = 0, found = 0;
  double worst = 1, sum = 0;
  for (int number = 0; number < chains; ++number) {
    Config c = chain(random);
    const std::int64_t most = memory_with(c, WhichBlocks::none), least = memory_with(c, WhichBlocks::block);
    c.memory.device_limit =
        least + static_cast<std::int64_t>(static_cast<double>(most - least) * (random() % 1000) / 1000);
    const LayoutSearch search = search_layouts(c, num_ranks(degrees_of(c)), tapes_free);
    const std::int64_t best = best_of_all(c);
    ASSERT_EQ(search.best.empty(), best == 0) << number;
    if (best == 0) continue;
    const LayoutCandidate& chosen = search.all[search.best.front()];
    EXPECT_LE(chosen.memory, c.memory.device_limit) << number;
    const double off = static_cast<double>(chosen.step) / static_cast<double>(best);
    ++found;
    beyond += off > 1.05 ? 1 : 0;
    worst = std::max(worst, off);
    sum += off;
  }
  std::cout << found << " chains: mean " << sum / found << " of the best, worst " << worst << ", " << beyond
            << " beyond 1.05\n";
  EXPECT_LE(beyond, std::max(1, 3 * found / 100));
  EXPECT_LE(worst, 1.12);
}

}  // namespace
}  // namespace mindpipe
