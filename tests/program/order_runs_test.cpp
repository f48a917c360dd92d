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
    if (seed % 2 == 1 && outline.micro_batches % 2 == 0) outline.shards = 2;
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

/// Moves passes of an order a short way, and takes some moves back, while runs hear of it.
class Moves {
 public:
  Moves(Order& order, OrderRuns& runs, unsigned seed) : order_(order), runs_(runs), random_(seed) {}

  /// Whether there was a pass that could be moved.
  bool move() {
    stage_ = static_cast<int>(random_() % order_.size());
    const std::vector<Pass>& passes = order_[stage_];
    from_ = static_cast<int>(random_() % passes.size());
    to_ = std::clamp(from_ - 3 + static_cast<int>(random_() % 7), 0, static_cast<int>(passes.size()) - 1);
    const auto is_own = [&](const Pass& pass) { return pass.micro_batch == passes[from_].micro_batch; };
    const auto [first, last] = std::minmax(from_, to_);
    if (first == last || std::count_if(passes.begin() + first, passes.begin() + last + 1, is_own) > 1)
      return false;
    carry_out(from_, to_);
    return true;
  }
  void take_back() { carry_out(to_, from_); }

 private:
  void carry_out(int from, int to) {
    std::vector<Pass>& passes = order_[stage_];
    const Pass moved = passes[from];
    passes.erase(passes.begin() + from);
    passes.insert(passes.begin() + to, moved);
    runs_.move(stage_, from, to);
    for (int place = 0; place < std::ssize(passes); ++place) EXPECT_EQ(runs_.place_of(passes[place]), place);
  }

  Order& order_;
  OrderRuns& runs_;
  std::mt19937 random_;
  int stage_ = 0, from_ = 0, to_ = 0;
};

bool are_as_critical(const PassClock::Run& a, const PassClock::Run& b) {
  const auto is_same = [](PlaceOfPass x, PlaceOfPass y) { return x.stage == y.stage && x.place == y.place; };
  return a.step == b.step && a.most_tapes == b.most_tapes &&
         std::equal(a.critical.begin(), a.critical.end(), b.critical.begin(), b.critical.end(), is_same);
}

TEST(OrderRuns, FollowMovesOfTheOrder) {
  constexpr auto critical = PassClock::Tells::critical;
  int longer = 0, left = 0, stand_still = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    DrawnOrder drawn(seed);
    const PassClock clock(drawn.outline, PriceList(drawn.outline, {}));
    const WeightRule rule{.quarters = 3, .most_tapes = drawn.limit};
    OrderRuns runs(clock, drawn.order);
    const PassClock::Run first = runs.run(rule, critical);
    if (first.most_tapes > drawn.limit) continue;
    std::int64_t kept = first.step;
    runs.keep();
    Moves moves(drawn.order, runs, seed);
    for (int turn = 0; turn < 40; ++turn) {
      if (!moves.move()) continue;
      const PassClock::Run anew = clock.run(drawn.order, rule, critical);
      const PassClock::Run within = runs.run_again(rule, kept);
      if (anew.step < 0 || (anew.step <= kept && anew.most_tapes <= drawn.limit)) {
        ASSERT_TRUE(anew.step < 0 ? within.step < 0 || within.step > kept : are_as_critical(within, anew))
            << seed;
      } else {
        ASSERT_GT(within.step, kept) << seed;
        ++left;
      }
      const PassClock::Run again = runs.run_again(rule, PassClock::any_length);
      ASSERT_TRUE(are_as_critical(again, anew)) << seed;
      if (anew.step < 0 || anew.most_tapes > drawn.limit || turn % 3 == 0) {
        moves.take_back();
        runs.forget_moves();
        stand_still += anew.step < 0 ? 1 : 0;
      } else {
        runs.keep();
        longer += anew.step > kept ? 1 : 0;
        kept = anew.step;
      }
      if (turn % 10 == 9) {
        ASSERT_TRUE(are_same(OrderRuns(runs).run(rule, PassClock::Tells::order),
                             clock.run(drawn.order, rule, PassClock::Tells::order)))
            << seed;
      }
    }
  }
  EXPECT_GT(longer, 50);
  EXPECT_GT(left, 50);
  EXPECT_GT(stand_still, 50);
}

}  // namespace
}  // namespace mindpipe
