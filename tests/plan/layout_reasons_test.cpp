// thorough
#include <gtest/gtest.h>

#include <random>

#include "plan/layout_search.h"
#include "runtime/small_models.h"

// The search moves for the right reason: one thing is changed at a time.
namespace mindpipe {
namespace {

constexpr SearchFreedom grids{.pipeline = true, .data = true, .tensor = true};

Config eight_blocks() {
  Config c = gpt2_style();
  c.model.gpt.layers = 8;
  c.model.gpt.heads = 8;
  c.train.batch = 32;
  c.train.micro_batch = 2;
  c.device.links = {4, 1e-6, 2e10, 1e-6, 2e10};
  c.reproducible = {0, 0, true, true};
  return c;
}

/// The best layout; the step is 0 where nothing fits.
LayoutCandidate best(const Config& c, int ranks, const SearchFreedom& free = grids) {
  const LayoutSearch search = search_layouts(c, ranks, free);
  return search.best.empty() ? LayoutCandidate{} : search.all[search.best.front()];
}

TEST(LayoutReasons, SlowLinksBetweenNodesKeepTensorRanksInTheNodeAndGrowThePipeline) {
  Config c = eight_blocks();
  c.model.gpt.width = 512;
  c.model.gpt.context = 128;
  const Coord fast = best(c, 16).layout.grid;
  c.device.links.rate_between_nodes = 2e7;
  c.device.links.latency_between_nodes = 1e-4;
  const Coord slow = best(c, 16).layout.grid;
  EXPECT_LE(slow.tensor, 4) << "a node has four ranks";
  EXPECT_GT(slow.pipeline, fast.pipeline) << "messages of a pipeline are few, sums over data are many";
}

TEST(LayoutReasons, AHeavyHeadTakesBlocksFromTheLastStage) {
  Config c = eight_blocks();
  c.grid = {1, 4, 1, 1};
  const auto last_blocks = [&](int vocabulary) {
    c.model.gpt.vocabulary = vocabulary;
    LayoutCandidate found = best(c, 4, {.cuts = true});
    Config known = with_layout(c, found.layout);
    return found.layout.cuts.empty() ? -1 : 10 - found.layout.cuts.back();
  };
  const int light = last_blocks(101), heavy = last_blocks(2000);
  EXPECT_NE(heavy, -1);
  EXPECT_LT(heavy, light == -1 ? 4 : light);
}

TEST(LayoutReasons, LessMemoryIsBoughtWithRecomputationShardingOrStagesAtTheLeastCost) {
  Config c = eight_blocks();
  const SearchFreedom free{.pipeline = true, .data = true, .zero = true, .recompute = true};
  const LayoutCandidate roomy = best(c, 8, free);
  EXPECT_EQ(roomy.layout.recompute, WhichBlocks::none);
  bool recomputed = false, sharded = false, more_stages = false;
  for (std::int64_t limit = roomy.memory - 1; limit > 0;) {
    c.memory.device_limit = limit;
    const LayoutCandidate tight = best(c, 8, free);
    if (tight.step == 0) break;
    EXPECT_LE(tight.memory, limit);
    EXPECT_GE(1.001 * static_cast<double>(tight.step), static_cast<double>(roomy.step));
    recomputed = recomputed || tight.layout.recompute.any();
    sharded = sharded || tight.layout.zero > 0;
    more_stages = more_stages || tight.layout.grid.pipeline > roomy.layout.grid.pipeline;
    limit = tight.memory - 1;
  }
  EXPECT_TRUE(recomputed);
  EXPECT_TRUE(sharded);
  EXPECT_TRUE(more_stages);
}

/// A small model with random sizes, on random links.
Config random_case(std::mt19937& numbers) {
  const auto one_of = [&](int from, int to) { return std::uniform_int_distribution(from, to)(numbers); };
  Config c = eight_blocks();
  c.model.gpt.layers = one_of(2, 8);
  c.model.gpt.width = 16 * one_of(1, 6);
  c.model.gpt.heads = 4;
  c.model.gpt.vocabulary = one_of(50, 800);
  c.train.micro_batch = 1 << one_of(0, 2);
  c.device.links = {1 << one_of(0, 2), 1e-6 * one_of(1, 9), 1e8 * one_of(1, 90), 1e-6 * one_of(5, 50),
                    1e7 * one_of(1, 90)};
  return c;
}

TEST(LayoutReasons, MoreMemoryAndMoreBandwidthNeverMakeTheStepLonger) {
  std::mt19937 numbers(44);
  const SearchFreedom free{.pipeline = true, .data = true, .tensor = true, .zero = true, .recompute = true};
  int compared = 0;
  for (int pair = 0; pair < 200; ++pair) {
    Config c = random_case(numbers);
    const int ranks = pair % 3 == 0 ? 4 : pair % 3 == 1 ? 6 : 8;
    const LayoutCandidate before = best(c, ranks, free);
    ASSERT_GT(before.step, 0);
    Config other = c;
    double allowed = 1.001;  // layouts within 0.1 % count as equal
    if (pair % 2 == 0) {     // less memory than the best takes, which cannot be faster
      other.memory.device_limit = before.memory * 3 / 4;
    } else {  // half the bandwidth
      other.device.links.rate /= 2;
      other.device.links.rate_between_nodes /= 2;
      allowed = 1.005;
    }
    const LayoutCandidate poorer = best(other, ranks, free);
    if (poorer.step == 0) continue;
    ++compared;
    EXPECT_LE(static_cast<double>(before.step), allowed * static_cast<double>(poorer.step))
        << "pair " << pair;
  }
  EXPECT_GT(compared, 150);
}

}  // namespace
}  // namespace mindpipe
