// thorough
#include "plan/layout_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/check.h"
#include "plan/layout_space.h"
#include "plan/memory_limits.h"
#include "plan/run_plan.h"
#include "plan/searched_settings.h"
#include "runtime/small_models.h"

namespace mindpipe {
namespace {

using Fate = LayoutCandidate::Fate;

constexpr SearchFreedom all_free{true, true, true, true, true, true, true, true, true};

/// Six blocks behind links that make tensor sums dear between nodes of two ranks.
Config small_gpt() {
  Config c = gpt2_style();
  c.model.gpt.layers = 6;
  c.train.batch = 32;
  c.train.micro_batch = 2;
  c.device.links = {2, 1e-6, 5e9, 20e-6, 5e8};
  c.reproducible = {0, 0, true, true};
  return c;
}

/// What a search has found, and every layout that it has looked at, simulated: `timed_by_search` says which
/// of them it has timed itself.
struct WholeSpace {
  LayoutSearch search;
  std::vector<LayoutCandidate> all;
  std::vector<bool> timed_by_search;
};
WholeSpace whole_space(const Config& config, int ranks, const SearchFreedom& free) {
  WholeSpace whole{search_layouts(config, ranks, free), {}, {}};
  for (LayoutCandidate one : whole.search.all) {
    whole.timed_by_search.push_back(one.step != 0);
    if (one.step == 0) simulate_layout(config, one);
    whole.all.push_back(std::move(one));
  }
  return whole;
}
/// The space of the small model without a limit, for several tests.
const WholeSpace& known_space(int ranks) {
  static std::map<int, WholeSpace> known;
  const auto [found, is_new] = known.try_emplace(ranks);
  if (is_new) found->second = whole_space(small_gpt(), ranks, all_free);
  return found->second;
}

/// Expects a choice that fits and that no layout of the space is shorter than; or none, where none fits.
void expect_the_best(const Config& c, int ranks, const WholeSpace& whole) {
  std::int64_t best = 0;
  for (const LayoutCandidate& one : whole.all)
    if (one.fate == Fate::simulated && (best == 0 || one.step < best)) best = one.step;
  const LayoutSearch& found = whole.search;
  if (best == 0) {
    EXPECT_TRUE(found.best.empty());
    return;
  }
  ASSERT_FALSE(found.best.empty());
  const LayoutCandidate& chosen = found.all[found.best.front()];
  EXPECT_LE(static_cast<double>(chosen.step), 1.001 * static_cast<double>(best));
  EXPECT_TRUE(c.memory.device_limit == 0 || chosen.memory <= c.memory.device_limit);
  EXPECT_EQ(num_ranks(chosen.layout.grid), ranks);
}

TEST(LayoutSearch, FindsTheBestOfTheWholeSpace) {
  for (const int ranks : {1, 2, 6, 8}) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    expect_the_best(small_gpt(), ranks, known_space(ranks));
    SCOPED_TRACE("within a limit");
    Config limited = small_gpt();
    limited.memory.device_limit = 700 << 10;
    expect_the_best(limited, ranks, whole_space(limited, ranks, all_free));
  }
}

/// A bundled model for GPUs, with as many logical shards as ranks.
Config bundled(const char* model, std::int64_t limit = 0) {
  Config c = read_config(
      std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + model + ".yaml",
      {"device.kind=cuda", "device.description=h200", "reproducible.data=auto", "reproducible.tensor=auto"});
  c.memory.device_limit = limit;
  return c;
}

TEST(LayoutSearch, FindsTheBestOfOtherKindsOfModels) {
  struct Case {
    const char* model;
    int ranks;
    std::int64_t limit;
  };
  for (const Case& one : {Case{"transformer-tiny", 4, 0},
                          {"bert-tiny", 4, 0},
                          {"bert-tiny", 4, 141 << 19},
                          {"vit-tiny", 4, 0},
                          {"wide-resnet-tiny", 4, 0},
                          {"evolved-transformer-tiny", 4, 0}}) {
    SCOPED_TRACE(fmt::format("{} on {} ranks, limit {}", one.model, one.ranks, one.limit));
    SearchFreedom free = all_free;
    free.sequence_parallel = false;
    const Config c = bundled(one.model, one.limit);
    expect_the_best(c, one.ranks, whole_space(c, one.ranks, free));
  }
}

TEST(LayoutSearch, FindsNothingBetterWhereTheGridIsWritten) {
  for (const std::int64_t limit : {0, 14 << 20}) {
    Config c = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt-tiny.yaml", {});
    c.memory.device_limit = limit;
    const LayoutSearch found = search_layouts(c, 8, all_free);
    ASSERT_FALSE(found.best.empty()) << "limit " << limit;
    SearchFreedom written = all_free;
    written.pipeline = written.data = written.tensor = false;
    for (const Coord& grid : grids_of(c, 8, all_free)) {
      c.grid = {1, grid.pipeline, grid.data, grid.tensor};
      const LayoutSearch alone = search_layouts(c, 8, written);
      if (alone.best.empty()) continue;
      const LayoutCandidate& best = alone.all[alone.best.front()];
      EXPECT_LE(static_cast<double>(found.all[found.best.front()].step),
                equal_costs * static_cast<double>(best.step))
          << "limit " << limit << ": " << words_of(best.layout, all_free);
    }
  }
}

/// Expects a layout's bounds, and the time that the search gave it, to hold in its plan made anew.
void expect_the_times_of_its_plan(const LayoutCandidate& one) {
  LayoutCandidate whole{.layout = one.layout};
  simulate_layout(small_gpt(), whole);
  if (row_of(one.layout.schedule).splits_backward) {  // fitted roughly
    EXPECT_NEAR(static_cast<double>(whole.step), static_cast<double>(one.step), 0.02 * one.step)
        << words_of(one.layout, all_free);
    EXPECT_LE(one.bound, whole.step) << words_of(one.layout, all_free);
  } else if (row_of(one.layout.schedule).has_groups) {  // another cut's groups may be longer than its own
    EXPECT_LE(whole.step, one.step) << words_of(one.layout, all_free);
    EXPECT_LE(one.bound, whole.step) << words_of(one.layout, all_free);
  } else {
    EXPECT_EQ(whole.step, one.step) << words_of(one.layout, all_free);
  }
  EXPECT_LE(one.least_memory, whole.memory) << words_of(one.layout, all_free);
}

TEST(LayoutSearch, NoBoundIsAboveWhatIsSimulated) {
  int layouts = 0, anew = 0;
  for (const int ranks : {2, 4, 8, 12}) {
    const WholeSpace& whole = known_space(ranks);
    for (std::size_t i = 0; i < whole.all.size(); ++i) {
      const LayoutCandidate& one = whole.all[i];
      if (one.fate != Fate::simulated) continue;
      ++layouts;
      EXPECT_LE(one.bound, one.step) << words_of(one.layout, all_free);
      EXPECT_TRUE(one.memory == 0 || one.least_memory <= one.memory) << words_of(one.layout, all_free);
      if (!whole.timed_by_search[i] && layouts % 5 != 0) continue;  // simulated alone by the test already
      expect_the_times_of_its_plan(one);
      ++anew;
    }
  }
  EXPECT_GT(layouts, 300);
  EXPECT_GT(anew, 100);
}

TEST(LayoutSearch, LeavesWhatIsWrittenAsItIs) {
  Config c = small_gpt();
  c.grid = {1, 2, 2, 2};
  c.train.zero = 1;
  const SearchFreedom free{.schedule = true, .recompute = true};
  for (const LayoutCandidate& one : search_layouts(c, 8, free).all) {
    EXPECT_EQ(one.layout.grid, (Coord{2, 2, 2, 1}));
    EXPECT_EQ(one.layout.zero, 1);
    EXPECT_EQ(one.layout.chunks, row_of(one.layout.schedule).chunks());
    EXPECT_TRUE(one.layout.cuts.empty());
    EXPECT_FALSE(one.layout.sequence_parallel);
  }
}

TEST(LayoutSearch, ChoosesForTheReasonsThatThereAre) {
  const auto best = [](const Config& c, const SearchFreedom& free, int ranks = 8) {
    const LayoutSearch search = search_layouts(c, ranks, free);
    return search.best.empty() ? LayoutChoice{} : search.all[search.best.front()].layout;
  };
  const SearchFreedom grids{.pipeline = true, .data = true, .tensor = true};
  Config links = small_gpt();
  links.reproducible = {0, 1, true, false};  // no data ranks
  links.train.micro_batch = 16;
  links.device.links = {2, 1e-6, 5e9, 1e-3, 1e7};
  EXPECT_EQ(best(links, grids, 4).grid.tensor, 2) << "tensor ranks share a node, and messages are few";
  links.device.links = {2, 1e-3, 1e7, 1e-3, 1e7};
  EXPECT_EQ(best(links, grids, 4).grid.tensor, 1);

  Config tight = small_gpt();
  tight.grid = {1, 2, 1, 1};
  LayoutCandidate keeping{.layout = layout_of(tight)};
  simulate_layout(tight, keeping);
  EXPECT_EQ(best(tight, {.recompute = true}, 2).recompute, WhichBlocks::none);
  tight.memory.device_limit = keeping.memory - 1;
  EXPECT_TRUE(best(tight, {.recompute = true}, 2).recompute.are_some());
}

TEST(LayoutSearch, ComputesAsFewBlocksAgainAsMemoryAllows) {
  Config c = small_gpt();
  c.model.gpt.layers = 3;
  c.grid = {1, 2, 1, 1};
  std::vector<LayoutCandidate> every;  // block 0 and the last are no candidates
  for (int chosen = 0; chosen < 64; ++chosen) {
    std::vector<int> numbers;
    for (int block = 0; block < 6; ++block)
      if ((chosen >> block & 1) != 0) numbers.push_back(block + 1);
    LayoutCandidate& one = every.emplace_back(LayoutCandidate{.layout = layout_of(c)});
    one.layout.recompute = ChosenBlocks(numbers);
    simulate_layout(c, one);
    ASSERT_EQ(one.fate, Fate::simulated) << one.refusal;
  }
  const std::int64_t most = every.front().memory, least = every.back().memory;
  ASSERT_LT(least, most);
  for (int part = 0; part <= 10; ++part) {
    c.memory.device_limit = least + (most - least) * part / 10;
    std::int64_t best = 0;
    for (const LayoutCandidate& one : every)
      if (one.memory <= c.memory.device_limit && (best == 0 || one.step < best)) best = one.step;
    const LayoutSearch search = search_layouts(c, 2, {.recompute = true});
    ASSERT_FALSE(search.best.empty()) << part;
    const LayoutCandidate& chosen = search.all[search.best.front()];
    EXPECT_LE(chosen.memory, c.memory.device_limit) << part;
    EXPECT_LE(static_cast<double>(chosen.step), 1.01 * static_cast<double>(best))
        << part << ": " << chosen.layout.recompute.text();
  }
}

TEST(LayoutSearch, WhatIsChosenFitsAndWhatIsExcludedDoesNot) {
  SearchFreedom free = all_free;
  free.schedule = free.chunks = free.cuts = false;
  int chosen = 0, excluded = 0;
  for (const int ranks : {2, 4, 6, 8}) {
    std::int64_t least = 0, most = 0;
    for (const LayoutCandidate& one : whole_space(small_gpt(), ranks, free).all) {
      if (one.memory == 0) continue;
      least = least == 0 ? one.memory : std::min(least, one.memory);
      most = std::max(most, one.memory);
    }
    for (int part = 0; part < 25; ++part) {
      Config c = small_gpt();
      c.memory.device_limit = least + (most - least) * part / 25;
      const LayoutSearch search = search_layouts(c, ranks, free);
      ASSERT_FALSE(search.best.empty()) << ranks << " ranks, " << c.memory.device_limit;
      const Config known = with_layout(c, search.all[search.best.front()].layout);
      require_fit(make_run_plan(known), c.memory.device_limit);
      ++chosen;
      for (const LayoutCandidate& one : search.all) {
        if (one.fate != Fate::too_large || ++excluded % 5 != 0) continue;
        LayoutCandidate whole{.layout = one.layout};
        simulate_layout(c, whole);
        EXPECT_GT(whole.memory, c.memory.device_limit) << words_of(one.layout, free);
      }
    }
  }
  EXPECT_EQ(chosen, 100);
  EXPECT_GT(excluded, 100);
}

/// The shortest step within a limit; 0: nothing fits.
std::int64_t shortest(Config c, int ranks, std::int64_t limit) {
  c.memory.device_limit = limit;
  const LayoutSearch search = search_layouts(c, ranks, all_free);
  return search.best.empty() ? 0 : search.all[search.best.front()].step;
}

TEST(LayoutSearch, MoreMemoryNeverMakesTheStepLonger) {
  std::int64_t least = 0;
  int pairs = 0, fitting = 0;
  std::vector<std::int64_t> limits;
  for (std::int64_t limit = 1800 << 10; limit <= 3100 << 10; limit += 60 << 10) limits.push_back(limit);
  limits.push_back(0);  // no limit
  for (const std::int64_t limit : limits) {
    const std::int64_t step = shortest(small_gpt(), 4, limit);
    if (step == 0) {
      EXPECT_EQ(least, 0) << limit;
      continue;
    }
    pairs += fitting++;
    if (least > 0) {
      EXPECT_LE(static_cast<double>(step), equal_costs * static_cast<double>(least)) << limit;
    }
    least = least == 0 ? step : std::min(least, step);
  }
  EXPECT_GE(pairs, 150);
}

TEST(LayoutSearch, ALimitThatBindsNothingLeavesTheStepAsItIs) {
  for (const auto& [model, ranks] : {std::pair{"gpt-tiny", 8}, {"bert-tiny", 4}, {"transformer-tiny", 4}}) {
    const std::int64_t free = shortest(bundled(model), ranks, 0),
                       within = shortest(bundled(model), ranks, std::int64_t{1} << 40);
    EXPECT_NEAR(static_cast<double>(within), static_cast<double>(free), 0.001 * static_cast<double>(free))
        << model;
  }
}

TEST(LayoutSearch, SaysWhichRuleRefusesAGrid) {
  Config c = small_gpt();
  c.model.gpt.heads = 3;
  c.model.gpt.width = 48;
  const LayoutSearch search = search_layouts(c, 4, all_free);
  ASSERT_TRUE(search.refused.count("grid.tensor"));
  EXPECT_GE(search.refused.at("grid.tensor").first, 2);
  EXPECT_THAT(search.refused.at("grid.tensor").second, testing::HasSubstr("model.heads 3"));
  c.reproducible = {1, 1, false, false};
  const LayoutSearch stages = search_layouts(c, 32, all_free);
  EXPECT_TRUE(stages.best.empty());
  ASSERT_TRUE(stages.refused.count("other reasons")) << "more stages than the model has blocks";
}

}  // namespace
}  // namespace mindpipe
