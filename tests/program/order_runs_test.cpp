#include "program/schedules/order_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "program/make_program.h"
#include "program/sample_outline.h"

// Runs of an order by the inner clock, one after another.
namespace mindpipe {
namespace {

/// Unequal stages, and an order for them.
struct DrawnOrder {
  Outline outline;
  Order order;
  std::int64_t limit = 0;

  explicit DrawnOrder(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    constexpr const char* schedules[] = {"zb-h1", "zb-v", "v-half", "dualpipe-v"};
    const char* schedule = schedules[below(4)];
    const int stages = 2 + below(4);
    outline = stages_of_gpt2(schedule, stages, 2 * stages + below(8), {12000, 25200, 15600, 9600});
    for (std::vector<BlockCost>& block : outline.blocks) {
      block[0].forward += 130 * below(9);
      block[0].backward_input += 170 * below(9);
      block[0].backward_weight += 110 * below(9);
    }
    order = make_order(schedule_named(schedule), request_of(outline));
    limit = most_tapes(outline, schedule_named(schedule)) * (85 + below(30)) / 100;
  }
};

bool are_same(const PassClock::Run& a, const PassClock::Run& b) {
  return a.step == b.step && a.most_tapes == b.most_tapes && a.beyond == b.beyond && a.order == b.order;
}

TEST(OrderRuns, TellThePercentsWithWhichTheyAreAlike) {
  constexpr auto order = PassClock::Tells::order;
  int alike = 0, others = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const DrawnOrder drawn(seed);
    const PassClock clock(drawn.outline, PriceList(drawn.outline, {}));
    OrderRuns runs(clock, drawn.order);
    WeightRule rule{.most_tapes = drawn.limit, .percents = {}};
    std::mt19937 random(seed);
    for (int stage = 0; stage < drawn.outline.stages; ++stage)
      rule.percents.push_back(1 + static_cast<int>(random() % 150));
    const PassClock::Run run = runs.run(rule, order);
    const std::vector<PercentsAlike> told = runs.alike();
    for (int stage = 0; stage < drawn.outline.stages; ++stage) {
      ASSERT_TRUE(told[stage].has(rule.percents[stage])) << seed;
      for (int percent = 1; percent <= 220; ++percent) {
        WeightRule other = rule;
        other.percents[stage] = percent;
        const bool is_same = are_same(runs.run(other, order), run);
        if (told[stage].has(percent)) {
          ASSERT_TRUE(is_same) << "seed " << seed << ", stage " << stage << ", " << percent << " %";
        }
        alike += told[stage].has(percent) ? 1 : 0;
        others += is_same ? 0 : 1;
      }
    }
  }
  EXPECT_GT(alike, 1000);
  EXPECT_GT(others, 1000);
}

TEST(OrderRuns, SeeNothingOfTheRunBefore) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const DrawnOrder drawn(seed);
    const PassClock clock(drawn.outline, PriceList(drawn.outline, {}));
    OrderRuns runs(clock, drawn.order);
    const WeightRule rule{.quarters = 3, .most_tapes = drawn.limit};
    const PassClock::Run first = runs.run(rule, PassClock::Tells::order);
    for (const int percent : {50, 75, 95}) {
      const std::int64_t longest = first.step * percent / 100;
      EXPECT_GT(runs.run(rule, PassClock::Tells::times, longest).step, longest) << "left";
      EXPECT_TRUE(are_same(runs.run(rule, PassClock::Tells::order), first))
          << seed << ", " << percent << " %";
    }
    runs.run({.puts_off = false}, PassClock::Tells::critical);
    EXPECT_TRUE(are_same(runs.run(rule, PassClock::Tells::order), first)) << seed;
    EXPECT_TRUE(are_same(clock.run(drawn.order, rule, PassClock::Tells::order), first)) << seed;
  }
}

TEST(OrderRuns, FollowMovesOfTheOrder) {
  int moves = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    DrawnOrder drawn(seed);
    const PassClock clock(drawn.outline, PriceList(drawn.outline, {}));
    const WeightRule rule{.quarters = 3, .most_tapes = drawn.limit};
    OrderRuns runs(clock, drawn.order);
    std::mt19937 random(seed);
    bool goes_on = true;
    for (int turn = 0; turn < 20; ++turn) {
      const int stage = static_cast<int>(random() % drawn.order.size());
      std::vector<Pass>& passes = drawn.order[stage];
      const int end = static_cast<int>(passes.size()), from = static_cast<int>(random() % passes.size()),
                to = std::clamp(from - 3 + static_cast<int>(random() % 7), 0, end - 1);
      const auto is_own = [&](const Pass& pass) { return pass.micro_batch == passes[from].micro_batch; };
      if (std::count_if(passes.begin() + std::min(from, to), passes.begin() + std::max(from, to) + 1,
                        is_own) > 1)
        continue;
      const auto carry_out = [&](int there, int back) {
        const Pass moved = passes[there];
        passes.erase(passes.begin() + there);
        passes.insert(passes.begin() + back, moved);
        runs.move(stage, there, back);
        for (int place = 0; place < end; ++place) ASSERT_EQ(runs.place_of(passes[place]), place) << seed;
      };
      carry_out(from, to);
      for (const auto tells : {PassClock::Tells::order, PassClock::Tells::critical}) {
        const PassClock::Run run = runs.run(rule, tells), anew = clock.run(drawn.order, rule, tells);
        ASSERT_TRUE(are_same(run, anew)) << seed;
        ASSERT_TRUE(std::equal(run.critical.begin(), run.critical.end(), anew.critical.begin(),
                               anew.critical.end(),
                               [](auto a, auto b) { return a.stage == b.stage && a.place == b.place; }))
            << seed;
        goes_on = run.step > 0;
      }
      moves += goes_on && from != to ? 1 : 0;
      if (!goes_on) carry_out(to, from);
    }
  }
  EXPECT_GT(moves, 50) << "after which the order goes on to its end";
}

}  // namespace
}  // namespace mindpipe
