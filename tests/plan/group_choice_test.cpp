#include "plan/group_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/random.h"
#include "core/text.h"
#include "plan/layout_search.h"
#include "plan/run_plan.h"
#include "program/sample_outline.h"
#include "program/schedules/step_order.h"
#include "runtime/small_models.h"

// Groups that are chosen, against all that an elastic schedule could have.
namespace mindpipe {
namespace {

/// How large a setting may be drawn.
struct Sizes {
  int least_stages = 2, most_stages = 4, most_chunks = 3, least_groups = 1, most_groups = 4;
};

/// A setting drawn by lot: stages, chunks, prices of passes, messages, sums and gathers.
struct Drawn {
  Outline outline;
  Network network;

  explicit Drawn(int number, const Sizes& sizes = {}) {
    const RandomStream lots{static_cast<std::uint64_t>(number), purpose_of("settings of elastic schedules")};
    std::uint64_t draws = 0;
    const auto from = [&](int least, int most) {
      return least + static_cast<int>(lots.word(draws++) % static_cast<std::uint64_t>(most - least + 1));
    };
    const int stages = from(sizes.least_stages, sizes.most_stages), chunks = from(2, sizes.most_chunks),
              groups = from(sizes.least_groups, sizes.most_groups);
    const std::int64_t forward = 1000 * from(600, 3000);
    outline = equal_stages(stages, stages * groups, chunks, {forward, forward * from(15, 25) / 10});
    outline.data = 2;
    outline.sharded_optimizer = from(0, 1) == 1;
    network.message.picoseconds_per_byte = static_cast<double>(forward) * from(5, 100);
    const std::int64_t sums = forward * from(0, 20);
    network.data.picoseconds_per_byte = 1;
    for (UnitCost& unit : outline.units) {
      unit.gradients = std::int64_t{1} << 20;
      unit.values = std::int64_t{1} << 20;
    }
    const std::int64_t bytes = sum_over_data(outline, 0).bytes;
    network.data.picoseconds_per_byte =
        std::max(1e-3, 1000.0 * static_cast<double>(sums) / chunks / static_cast<double>(bytes));
  }
  PlannedStep step(const MicroBatchGroups& groups) const {
    return make_program(outline, ScheduleKind::elastic, network, groups);
  }
  int tapes(const PlannedStep& step) const {
    const std::vector<int> peaks = peak_tapes(step.program, outline);
    return *std::max_element(peaks.begin(), peaks.end());
  }
};

/// All groups in multiples of p that add up to m.
std::vector<std::vector<int>> all_groups(int stages, int micro_batches) {
  if (micro_batches == 0) return {{}};
  std::vector<std::vector<int>> all;
  for (int first = stages; first <= micro_batches; first += stages)
    for (std::vector<int> rest : all_groups(stages, micro_batches - first)) {
      rest.insert(rest.begin(), first);
      all.push_back(rest);
    }
  return all;
}

struct Best {
  std::int64_t step = 0;
  int tapes = 0;
};
/// The shortest step of all groups with at most so many tapes.
Best best_of_all(const Drawn& drawn, int most_tapes) {
  Best best;
  const auto lists = all_groups(drawn.outline.stages, drawn.outline.micro_batches);
  for (const auto& forward : lists)
    for (const auto& backward : lists) {
      const PlannedStep step = drawn.step({forward, backward});
      const int tapes = drawn.tapes(step);
      if (tapes > most_tapes || (best.step > 0 && step.expected.step >= best.step)) continue;
      best = {step.expected.step, tapes};
    }
  return best;
}

TEST(GroupChoice, IsWithinAPercentOfTheBestOfAllGroupsAndWithinItsLimit) {
  for (int number = 0; number < 40; ++number) {
    const Drawn drawn(number);
    const int all = drawn.outline.chunks * drawn.outline.micro_batches,
              least = drawn.tapes(drawn.step(
                  {std::vector<int>(drawn.outline.micro_batches / drawn.outline.stages, drawn.outline.stages),
                   std::vector<int>(drawn.outline.micro_batches / drawn.outline.stages,
                                    drawn.outline.stages)}));
    const int limit = number % 2 == 0 ? all : least + (all - least) * (number % 5) / 5;
    const MicroBatchGroups chosen =
        choose_groups(drawn.outline, drawn.network, {}, [&](const MicroBatchGroups& groups, std::int64_t) {
          return drawn.tapes(drawn.step(groups)) <= limit;
        });
    const PlannedStep step = drawn.step(chosen);
    const Best best = best_of_all(drawn, limit);
    EXPECT_LE(static_cast<double>(step.expected.step), 1.01 * static_cast<double>(best.step))
        << number << ": [" << joined(chosen.forward) << "] and [" << joined(chosen.backward) << "], p "
        << drawn.outline.stages << " m " << drawn.outline.micro_batches << " v " << drawn.outline.chunks
        << " limit " << limit;
    EXPECT_LE(drawn.tapes(step), limit) << number;
  }
}

/// Micro-batches times chunks that the rank with the most holds tapes of.
int most_held(const Order& order) {
  int most = 0;
  for (const auto& passes : order) {
    int held = 0;
    for (const Pass& pass : passes) most = std::max(most, held += pass.kind == ActionKind::forward ? 1 : -1);
  }
  return most;
}

TEST(GroupChoice, OfMorePassesThanAllAreTriedForIsWithinAPercentAndItsLimitToo) {
  for (const int number : {1, 7, 10, 12, 14, 21, 23}) {
    const Drawn drawn(
        number, {.least_stages = 4, .most_stages = 8, .most_chunks = 4, .least_groups = 3, .most_groups = 6});
    const Outline& outline = drawn.outline;
    ASSERT_GT(2 * outline.stages * outline.chunks * outline.micro_batches, 512);
    const PriceList prices(outline, drawn.network);
    const auto tried = [&](const MicroBatchGroups& groups) {
      const Order order = make_order(ScheduleKind::elastic, request_of(outline, groups));
      return Best{StepOrder(outline, prices, order).run({}), most_held(order)};
    };
    std::vector<Best> all;
    const auto lists = all_groups(outline.stages, outline.micro_batches);
    for (const auto& forward : lists)
      for (const auto& backward : lists) all.push_back(tried({forward, backward}));
    const auto [fewest, most] = std::ranges::minmax(all, {}, &Best::tapes);
    for (const double share : {0.5, 1.0}) {
      const int limit = fewest.tapes + static_cast<int>(share * (most.tapes - fewest.tapes));
      std::int64_t best = std::numeric_limits<std::int64_t>::max();
      for (const Best& one : all)
        if (one.tapes <= limit) best = std::min(best, one.step);
      const MicroBatchGroups chosen = choose_groups(
          outline, drawn.network, {},
          [&](const MicroBatchGroups& groups, std::int64_t) { return tried(groups).tapes <= limit; });
      EXPECT_LE(static_cast<double>(tried(chosen).step), 1.01 * static_cast<double>(best))
          << number << ": [" << joined(chosen.forward) << "] and [" << joined(chosen.backward) << "], p "
          << outline.stages << " m " << outline.micro_batches << " v " << outline.chunks << " limit "
          << limit;
      EXPECT_LE(tried(chosen).tapes, limit) << number;
    }
  }
}

TEST(GroupChoice, KeepsWhatIsWritten) {
  const Drawn drawn(3);
  const int m = drawn.outline.micro_batches;
  EXPECT_EQ(choose_groups(drawn.outline, drawn.network, {{m}, {}}).forward, std::vector<int>{m});
  EXPECT_EQ(choose_groups(drawn.outline, drawn.network, {{}, {m}}).backward, std::vector<int>{m});
}

TEST(GroupChoice, TakesTheFewestTapesWhereNothingIsSummed) {
  Drawn drawn(3);
  drawn.outline = equal_stages(4, 16, 4);
  const MicroBatchGroups chosen = choose_groups(drawn.outline, drawn.network, {});
  EXPECT_EQ(chosen, (MicroBatchGroups{{4, 4, 4, 4}, {4, 4, 4, 4}}));
}

Config elastic_gpt(std::int64_t limit) {
  Config config = gpt2_style();
  config.model.gpt.layers = 8;
  config.grid = {1, 2, 2, 1};
  config.schedule.kind = ScheduleKind::elastic;
  config.schedule.chunks = 2;
  config.train.micro_batch = 1;
  config.train.batch = 32;
  config.memory.device_limit = limit;
  return resolve(config);
}

std::int64_t most_bytes(const RunPlan& plan) {
  std::int64_t most = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, total_of(plan.most_memory(stage)));
  return most;
}

TEST(GroupChoice, OfARunStaysWithinTheLimitOfADevice) {
  Config config = elastic_gpt(0);
  config.schedule.groups = {{16}, {16}};
  const std::int64_t all = most_bytes(make_run_plan(config));
  config.schedule.groups = {{2, 2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 2, 2, 2, 2}};
  const std::int64_t least = most_bytes(make_run_plan(config));
  ASSERT_LT(least, all);
  for (const std::int64_t limit : {least, (least + all) / 2, all}) {
    const RunPlan plan = make_run_plan(elastic_gpt(limit));
    EXPECT_LE(most_bytes(plan), limit);
    EXPECT_FALSE(plan.groups.forward.empty() || plan.groups.backward.empty());
  }
}

/// The step of an elastic run where some blocks may be computed again, or those that it has.
std::int64_t shortest_step(const Config& config, bool chooses_blocks) {
  const LayoutSearch search = search_layouts(config, num_ranks(degrees_of(config.grid)),
                                             {.recompute = chooses_blocks, .swap = false});
  return search.best.empty() ? 0 : search.all[search.best.front()].step;
}

TEST(GroupChoice, GoesWithAsFewBlocksComputedAgainAsTheLimitAsksFor) {
  Config config = elastic_gpt(0);
  const std::int64_t kept = shortest_step(config, false);
  config.schedule.groups = {{2, 2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 2, 2, 2, 2}};
  const std::int64_t least = most_bytes(make_run_plan(config));
  config.train.recompute = WhichBlocks::block;
  const std::int64_t again = most_bytes(make_run_plan(config));
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const int percent : {10, 50, 80}) {
    config = elastic_gpt(again + (least - again) * percent / 100);
    const std::int64_t some = shortest_step(config, true);
    config.train.recompute = WhichBlocks::block;
    const std::int64_t all = shortest_step(config, false);
    EXPECT_LT(some, all) << percent;
    EXPECT_LE(some, before) << percent;
    EXPECT_GE(some, kept) << percent;
    before = some;
  }
}

}  // namespace
}  // namespace mindpipe
