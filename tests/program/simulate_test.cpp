#include "program/clock/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "program/make_program.h"
#include "program/optimum.h"
#include "program/sample_outline.h"
#include "program/schedules/pass_clock.h"

namespace mindpipe {
namespace {

std::int64_t step_of(const std::string& schedule, const Outline& outline) {
  return make_program(outline, schedule).expected.step;
}

TEST(Simulate, GpipeAnd1f1bTakeTheKnownTimes) {
  const int known[][3] = {{2, 4, 15}, {4, 4, 21}, {4, 8, 33}, {4, 32, 105}, {8, 8, 45}, {8, 32, 117}};
  for (const auto& [p, m, step] : known) {
    EXPECT_EQ(step_of("1f1b", equal_stages(p, m)), step * 1000) << p << ' ' << m;
    EXPECT_EQ(step_of("gpipe", equal_stages(p, m)), step * 1000) << p << ' ' << m;
  }
}

TEST(Simulate, BubbleSharesAreTheKnownOnes) {
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_NEAR(make_program(equal_stages(4, 8), "1f1b").expected.bubble(rank), 3.0 / 11, 1e-12);
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_NEAR(make_program(equal_stages(8, 32), "1f1b").expected.bubble(rank), 7.0 / 39, 1e-12);
}

TEST(Simulate, ChunksShrinkTheBubble) {
  EXPECT_EQ(step_of("interleaved", equal_stages(4, 8, 2)), 28500);
  EXPECT_EQ(step_of("breadth-first", equal_stages(4, 8, 2)), 28500);
  EXPECT_EQ(step_of("interleaved", equal_stages(4, 4, 4)), 12000 + 9000 / 4);
  EXPECT_EQ(step_of("breadth-first", equal_stages(4, 3, 2)), 15000);
}

TEST(Simulate, WeightGradientsFillTheBubble) {
  const StageTimes thirds{1000, 2000, 1000, 1000};
  EXPECT_EQ(step_of("zb-h1", equal_stages(4, 8, 1, thirds)), 27000);
  EXPECT_EQ(step_of("1f1b", equal_stages(4, 8, 1, thirds)), 33000);
}

/// Percent of the step in which the stage that computes the least stands idle.
double idle_percent(std::string_view schedule, const StageTimes& times, std::int64_t message) {
  Network network;
  network.message.latency = message;
  return 100 * make_program(stages_of_gpt2(schedule, 8, 32, times), schedule, network).expected.bubble(0);
}

TEST(Simulate, IdleTimeAtAboutTheMemoryOf1f1b) {
  struct Known {
    const char* schedule;
    double equal, unequal;  ///< percent
  };
  for (const Known& known : {Known{"1f1b", 17.9, 20.2},
                             {"interleaved", 9.9, 11.1},
                             {"zb-h1", 8.6, 12.2},
                             {"zb-v", 3.5, 5.7},
                             {"dualpipe-v", 3.5, 5.2},
                             {"v-half", 8.6, 13.2}}) {
    EXPECT_NEAR(idle_percent(known.schedule, {12000, 24000, 12000, 12000}, 0), known.equal, 0.1)
        << known.schedule;
    EXPECT_NEAR(idle_percent(known.schedule, {12000, 25200, 15600, 9600}, 600), known.unequal, 0.1)
        << known.schedule;
  }
}

TEST(Simulate, PutOffProductsKeepTheLimitOfTheirSchedule) {
  for (const int p : {4, 8, 16})
    for (const std::string schedule : {"zb-h1", "zb-v", "dualpipe-v", "v-half"}) {
      const Outline outline = stages_of_gpt2(schedule, p, 2 * p, {12000, 25200, 15600, 9600});
      const PassClock clock(outline, PriceList(outline, {}));
      const Order rows = make_order(schedule_named(schedule), request_of(outline));
      const std::int64_t limit = most_tapes(outline, schedule_named(schedule)),
                         held = clock.run(rows, {.most_tapes = limit}).most_tapes;
      EXPECT_LE(held, p == 4 ? 1.2 * tapes_of_1f1b(outline) : limit) << schedule << ' ' << p;
    }
}

TEST(Simulate, TheInnerClockIsTheSimulatorsWhereNothingElseTakesTime) {
  for (const std::string& schedule : schedules_on(4))
    for (const int m : {3, 8, 13}) {
      Outline outline = stages_of_gpt2(schedule, 4, m, {12000, 25200, 15600, 9600});
      Network network;
      network.message.latency = 700;
      const PassClock clock(outline, PriceList(outline, network));
      const PassClock::Run run =
          clock.run(make_order(schedule_named(schedule), request_of(outline)),
                    {.puts_off = row_of(schedule_named(schedule)).splits_backward}, PassClock::Tells::order);
      EXPECT_NEAR(static_cast<double>(plan_step(outline, run.order, network).expected.step),
                  static_cast<double>(run.step), 0.006 * static_cast<double>(run.step))
          << schedule << ' ' << m;
    }
}

TEST(Simulate, ClosedFormsHoldFromMEqualToP) {
  for (int p = 1; p <= 5; ++p)
    for (int m = p; m <= 12; m += 3) {
      EXPECT_EQ(step_of("1f1b", equal_stages(p, m)), (m + p - 1) * 3000);
      EXPECT_EQ(step_of("zb-h1", equal_stages(p, m)), m * 3000 + (p - 1) * 1000);
      EXPECT_EQ(step_of("breadth-first", equal_stages(p, m, 2)), m * 3000 + (p - 1) * 1500);
      if (m % p == 0) {
        EXPECT_EQ(step_of("interleaved", equal_stages(p, m, 2)), m * 3000 + (p - 1) * 1500);
      }
    }
}

TEST(Simulate, TapesHeldAreTheTables) {
  for (int p = 1; p <= 8; ++p)
    for (int m : {1, 2, 3, 5, 8, 16}) {
      const auto expect = [&](const char* schedule, auto tapes_of_stage) {
        const Outline outline = equal_stages(p, m);
        const auto held = peak_tapes(make_program(outline, schedule).program, outline);
        for (int i = 0; i < p; ++i)
          EXPECT_EQ(held[i], tapes_of_stage(i)) << schedule << " p " << p << " m " << m << " stage " << i;
      };
      expect("gpipe", [&](int) { return m; });
      expect("1f1b", [&](int stage) { return std::min(m, p - stage); });
      const auto put_off = peak_tapes(make_program(equal_stages(p, m), "zb-h1").program, equal_stages(p, m));
      EXPECT_LE(*std::max_element(put_off.begin(), put_off.end()), std::min(m, p + p / 10)) << p << ' ' << m;
      const Outline outline = equal_stages(p, m, 2);
      EXPECT_EQ(peak_tapes(make_program(outline, "breadth-first").program, outline),
                std::vector<int>(p, 2 * m));
      if (m % p == 0 && m > p) {
        EXPECT_EQ(peak_tapes(make_program(outline, "interleaved").program, outline)[0], 2 * p + p - 1);
      }
    }
}

TEST(Simulate, NoOrderBeats1f1b) {
  const auto best = [](int p, int m, StageTimes times) {
    return Optimum(p, 1, m, times.forward, times.backward, 0).step();
  };
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 16; ++m)
      EXPECT_EQ(step_of("1f1b", equal_stages(p, m)), best(p, m, {})) << p << ' ' << m;
  for (const StageTimes& times : {StageTimes{1000, 1000}, {1000, 3000}, {2000, 1000}})
    for (int p = 1; p <= 5; ++p)
      for (int m = 1; m <= 8; ++m)
        EXPECT_EQ(step_of("1f1b", equal_stages(p, m, 1, times)), best(p, m, times))
            << p << ' ' << m << ' ' << times.backward;
}

TEST(Simulate, NoOrderBeatsBreadthFirstNorInterleavedWhereMicroBatchesAreFewOrDivide) {
  constexpr StageTimes times{6000, 12000};  // halves and thirds
  const auto compare = [&](int p, int v, int m) {
    const std::int64_t best = Optimum(p, v, m, times.forward / v, times.backward / v, 0).step();
    const Outline outline = equal_stages(p, m, v, times);
    EXPECT_EQ(step_of("breadth-first", outline), best) << p << ' ' << v << ' ' << m;
    if (m <= p || m % p == 0) {
      EXPECT_EQ(step_of("interleaved", outline), best) << p << ' ' << v << ' ' << m;
    }
  };
  for (int p = 1; p <= 3; ++p) {
    for (int m = 1; m <= 8; ++m) compare(p, 2, m);
    for (int m = 1; m <= 4; ++m) compare(p, 3, m);
  }
  for (int m : {1, 2, 4, 8}) compare(4, 2, m);
}

TEST(Simulate, NoOrderBeatsZeroBubble) {
  for (int p = 1; p <= 5; ++p)
    for (int m = 1; m <= (p == 5 ? 3 : 8); ++m)
      EXPECT_EQ(step_of("zb-h1", equal_stages(p, m)), Optimum(p, 1, m, 1000, 1000, 1000).step())
          << p << ' ' << m;
}

TEST(Simulate, SlowTrafficTakesTime) {
  const Outline outline = equal_stages(2, 1);
  Network network;
  network.message = {100, 1000};  // 100 ns + 1 ns a byte, 8 bytes
  EXPECT_EQ(make_program(outline, "1f1b", network).expected.step, 6000 + 2 * 108);
  network.between[{1, 0}] = {500, 0};
  EXPECT_EQ(make_program(outline, "1f1b", network).expected.step, 6000 + 108 + 500);
}

TEST(Simulate, ReductionsStartWhileTheLastBackwardGoesOn) {
  Outline outline = equal_stages(1, 2, 1, {1000, 2000, 1000, 1000}, 2);
  outline.data = 2;
  Network network;
  network.data = {
      0, 10000};  // 40 bytes, of which 40 are sent: 400 ns for a block; its half of a backward takes 1000
  const PlannedStep step = make_program(outline, "1f1b", network);
  EXPECT_EQ(step.expected.step, 6000 + 400 + 80) << "the loss is a number of 8 bytes, of which 8 are sent";
}

TEST(Simulate, WhatMayBeginAtOneMomentDoesSoByClass) {
  Program program{{{}, {}}};
  program.ranks[0] = {action_of(ActionKind::reduce), action_of(ActionKind::send),
                      action_of(ActionKind::update)};
  program.ranks[1] = {action_of(ActionKind::receive)};
  program.ranks[0][1].peer = 1;
  program.ranks[1][0].peer = 0;
  const Timeline line = simulate(program, {{7, 7, 7}, {7}}, {});
  EXPECT_EQ(line.started[0], (std::vector<std::int64_t>{2, 1, 0})) << "computation first";
  EXPECT_EQ(line.started[1], (std::vector<std::int64_t>{1})) << "a message begins on both its ranks";
}

TEST(Simulate, MeasuredDurationsReplaceTheTable) {
  const Outline outline = equal_stages(2, 2);
  const PlannedStep step = make_program(outline, "1f1b");
  Durations measured = durations_of(step.program, outline, {});
  for (std::size_t i = 0; i < measured[1].size(); ++i)
    if (step.program.ranks[1][i].kind == ActionKind::forward) measured[1][i] += 250;
  EXPECT_EQ(simulate(step.program, measured, {}).step, step.expected.step + 500);
}

}  // namespace
}  // namespace mindpipe
