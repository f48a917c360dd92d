// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "models/small.h"
#include "plan/largest_memory.h"
#include "plan/layout_trial.h"
#include "plan/memory_limits.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"
#include "plan/searched_settings.h"

// Which tapes are kept, made again or swapped, where memory is short.
namespace mindpipe {
namespace {

constexpr SearchFreedom tapes_free{.recompute = true, .swap = true};

/// How many chains of blocks are tried: MINDPIPE_CHAINS, or a few.
int chains_wished() {
  const char* wish = std::getenv("MINDPIPE_CHAINS");
  return wish == nullptr ? 20 : std::atoi(wish);
}

/// A model of six to eight blocks that can be recomputed, of one kind or of several.
Config some_model(std::mt19937& random) {
  const int more = static_cast<int>(random() % 2);
  switch (random() % 4) {
    case 0: {
      Config c = testing::post_norm(Tables::two);
      transformer::Settings& m = c.model.transformer;
      m.width = 64;
      m.mlp_width = 256;
      m.layers = 2 - more;
      m.decoder_layers = 1 + more;
      m.context = 96;
      c.data.source_sequence = 64;
      c.data.target_sequence = 96;
      return c;
    }
    case 1: {
      Config c = testing::wide_resnet();
      c.model.wide_resnet.depth = 16;
      c.model.wide_resnet.width = 2;
      c.model.wide_resnet.picture_height = c.model.wide_resnet.picture_width = 32;
      return c;
    }
    default: {
      Config c = testing::gpt2();
      if (random() % 2 == 0) become_llama(c);
      c.model.gpt.layers = 3 + more;
      c.model.gpt.width = 64;
      c.model.gpt.mlp_width = 64 * (1 + static_cast<int>(random() % 4));
      c.model.gpt.context = 64;
      return c;
    }
  }
}

/// Such a model on two to four stages, with copies that take from a tenth to twice of a stage's passes.
Config chain(std::mt19937& random) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  Config c = some_model(random);
  c.grid = {1, 2 + below(3), 1, 1};
  c.train.micro_batch = 8 * (1 + below(3));
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

/// All ways to cut so many blocks into stages, as settings.
std::vector<std::vector<int>> all_cuts(int blocks, int stages) {
  std::vector<std::vector<int>> all{{}};
  for (int stage = 1; stage < stages; ++stage) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& cuts : all)
      for (int next = cuts.empty() ? 1 : cuts.back() + 1; next <= blocks - (stages - stage); ++next) {
        longer.push_back(cuts);
        longer.back().push_back(next);
      }
    all = std::move(longer);
  }
  return all;
}

/// All choices for the tapes of the blocks that have one.
std::vector<TapeChoice> all_choices(const std::vector<char>& changeable) {
  std::vector<int> can;
  for (int block = 0; block < std::ssize(changeable); ++block)
    if (changeable[block] != 0) can.push_back(block);
  int count = 1;
  for (std::size_t i = 0; i < can.size(); ++i) count *= 3;
  std::vector<TapeChoice> all;
  for (int choice = 0; choice < count; ++choice) {
    std::vector<int> recomputed, swapped;
    for (int i = 0, rest = choice; i < std::ssize(can); ++i, rest /= 3) {
      if (rest % 3 == 1) recomputed.push_back(can[i]);
      if (rest % 3 == 2) swapped.push_back(can[i]);
    }
    all.push_back({ChosenBlocks(recomputed), ChosenBlocks(swapped)});
  }
  return all;
}

/// The shortest step that fits, of every cut with every choice, or `best` where none is shorter; 0: none
/// fits. Those are simulated whose bounds do not say before that they are longer or larger.
std::int64_t best_of_all(const Config& config, std::int64_t best) {
  PricedBlocks blocks;
  struct Bounded {
    std::int64_t bound = 0;
    int choice = 0, cut = 0;
  };
  std::vector<Bounded> open;
  const std::vector<TapeChoice> choices = all_choices(blocks.changeable(config));
  const std::vector<std::vector<int>> cuts =
      all_cuts(blocks.laid_out(config).all_blocks(), config.grid.pipeline);
  LayoutChoice layout = layout_of(config);
  for (int choice = 0; choice < std::ssize(choices); ++choice) {
    layout.recompute = choices[choice].recompute;
    layout.swap = choices[choice].swap;
    const Config known = with_layout(config, layout);
    const LayoutSketch sketch(known, blocks.laid_out(known));
    for (int cut = 0; cut < std::ssize(cuts); ++cut) {
      LayoutChoice other = layout;
      other.cuts = cuts[cut];
      const LayoutCandidate one = sketch.candidate(layout, sketch.first_block(other));
      if (one.least_memory <= config.memory.device_limit) open.push_back({one.bound, choice, cut});
    }
  }
  std::stable_sort(open.begin(), open.end(),
                   [](const Bounded& a, const Bounded& b) { return a.bound < b.bound; });
  for (const Bounded& next : open) {
    if (best > 0 && next.bound >= best) break;
    LayoutCandidate one{.layout = layout};
    one.layout.recompute = choices[next.choice].recompute;
    one.layout.swap = choices[next.choice].swap;
    one.layout.cuts = cuts[next.cut];
    time_layout(config, one, blocks, {}, static_cast<double>(best));
    if (one.fate != LayoutCandidate::Fate::simulated || (best > 0 && one.step >= best)) continue;
    const std::int64_t least = one.least_memory;
    simulate_layout(config, one);
    EXPECT_TRUE(one.memory == 0 || least <= one.memory) << words_of(one.layout, tapes_free);
    if (one.fate == LayoutCandidate::Fate::simulated) best = one.step;
  }
  return best;
}

TEST(TapeSearch, IsNearTheBestOfEveryCutWithEveryChoice) {
  std::mt19937 random(11);
  const int chains = chains_wished();
  int beyond = 0, found = 0;
  double worst = 1, sum = 0;
  for (int number = 0; number < chains; ++number) {
    Config c = chain(random);
    const std::int64_t most = largest_memory(c, WhichBlocks::none),
                       least = largest_memory(c, WhichBlocks::block);
    c.memory.device_limit =
        least + static_cast<std::int64_t>(static_cast<double>(most - least) * (random() % 1000) / 1000);
    const LayoutSearch search = search_layouts(c, num_ranks(degrees_of(c.grid)), tapes_free);
    const std::int64_t chosen_step = search.best.empty() ? 0 : search.all[search.best.front()].step,
                       best = best_of_all(c, chosen_step);
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

/// Tapes of all blocks alike: kept, computed again, swapped.
std::vector<LayoutCandidate> alike(const Config& c) {
  std::vector<LayoutCandidate> all;
  for (const auto& [again, away] :
       {std::pair(WhichBlocks::none, WhichBlocks::none), std::pair(WhichBlocks::block, WhichBlocks::none),
        std::pair(WhichBlocks::none, WhichBlocks::block)}) {
    LayoutCandidate& one = all.emplace_back();
    one.layout = layout_of(c);
    one.layout.recompute = again;
    one.layout.swap = away;
    simulate_layout(c, one);
  }
  return all;
}

TEST(TapeSearch, OfEveryScheduleIsNoLongerThanAllBlocksAlikeAndFitsWhereTheyDo) {
  std::mt19937 random(5);
  const ScheduleKind kinds[] = {ScheduleKind::interleaved, ScheduleKind::zero_bubble,
                                ScheduleKind::breadth_first, ScheduleKind::gpipe,
                                ScheduleKind::zero_bubble_v};
  int accepted = 0;
  for (int number = 0; number < 30; ++number) {
    Config c = chain(random);
    c.schedule.kind = kinds[number % std::size(kinds)];
    const ScheduleRow& row = row_of(c.schedule.kind);
    if (row.in_v || number % 5 == 0 || number % 5 == 2) {
      c.grid.pipeline = 2;
      c.schedule.chunks = 2;
    }
    c = resolve(c);
    std::int64_t least = 0, most = 0;
    for (const LayoutCandidate& one : alike(c)) {
      if (one.memory == 0) continue;
      most = std::max(most, one.memory);
      if (least == 0 || one.memory < least) least = one.memory;
    }
    c.memory.device_limit = least + (most - least) * static_cast<std::int64_t>(random() % 100) / 100;
    const LayoutSearch search = search_layouts(c, num_ranks(degrees_of(c.grid)), tapes_free);
    ASSERT_FALSE(search.best.empty()) << number;
    const LayoutCandidate& chosen = search.all[search.best.front()];
    for (const LayoutCandidate& one : alike(c))
      if (one.fate == LayoutCandidate::Fate::simulated) {
        ++accepted;
        EXPECT_LE(static_cast<double>(chosen.step), equal_costs * static_cast<double>(one.step))
            << number << ": " << words_of(one.layout, tapes_free);
      }
  }
  EXPECT_GT(accepted, 30);
}

TEST(TapeSearch, OfElasticGroupsIsNearTheBestOfEveryChoice) {
  Config c = testing::gpt2();
  c.model.gpt.layers = 3;
  c.grid = {1, 2, 2, 1};
  c.schedule.kind = ScheduleKind::elastic;
  c.schedule.chunks = 2;
  c.train.micro_batch = 1;
  c.train.batch = 16;
  c.reproducible = {1, 2};
  c.device.links.rate = 2e8;
  c.device.kind = DeviceKind::emulated;
  c.device.description = "core";
  c = resolve(c);
  const std::int64_t most = largest_memory(c, WhichBlocks::none),
                     least = largest_memory(c, WhichBlocks::block);
  PricedBlocks blocks;
  const std::vector<TapeChoice> choices = all_choices(blocks.changeable(c));
  for (const int percent : {25, 60}) {
    c.memory.device_limit = least + (most - least) * percent / 100;
    std::int64_t best = 0;
    for (const TapeChoice& choice : choices) {
      if (choice.swap.any()) continue;
      LayoutCandidate one{.layout = layout_of(c)};
      one.layout.recompute = choice.recompute;
      simulate_layout(c, one);
      if (one.fate == LayoutCandidate::Fate::simulated && (best == 0 || one.step < best)) best = one.step;
    }
    const LayoutSearch search =
        search_layouts(c, num_ranks(degrees_of(c.grid)), {.recompute = true, .swap = false});
    ASSERT_FALSE(search.best.empty());
    const LayoutCandidate& chosen = search.all[search.best.front()];
    EXPECT_LE(chosen.memory, c.memory.device_limit);
    EXPECT_LE(static_cast<double>(chosen.step), 1.01 * static_cast<double>(best)) << percent;
  }
}

}  // namespace
}  // namespace mindpipe
