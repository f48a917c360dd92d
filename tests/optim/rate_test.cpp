#include "optim/rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "config/kinds.h"
#include "config/sections/optimizer.h"

namespace mindpipe {
namespace {

constexpr int steps = 100, warmup = 10;
constexpr double peak = 3e-3, low = 2e-4;
constexpr RateKind every_kind[] = {RateKind::constant,     RateKind::linear, RateKind::cosine,
                                   RateKind::inverse_sqrt, RateKind::wsd,    RateKind::steps};

RateConfig rule(RateKind kind, int decay = steps) { return {kind, peak, low, warmup, decay, {}, 0.2}; }

TEST(Rate, WarmUpRisesInEqualStepsAndEndsAtThePeak) {
  for (RateKind kind : every_kind)
    for (int step = 0; step < warmup; ++step)
      EXPECT_DOUBLE_EQ(rate_at(rule(kind, 20), step, steps), peak * (step + 1) / warmup) << name_of(kind);
}

TEST(Rate, TheRunBeginsAtThePeakWithoutWarmUp) {
  for (RateKind kind : every_kind) {
    RateConfig without = rule(kind, 20);
    without.warmup = 0;
    EXPECT_DOUBLE_EQ(rate_at(without, 0, steps), peak) << name_of(kind);
  }
}

TEST(Rate, AConstantStaysAtThePeak) {
  for (int step = warmup; step < 3 * steps; ++step)
    EXPECT_EQ(rate_at(rule(RateKind::constant), step, steps), peak);
}

TEST(Rate, LinearFallsInEqualStepsToTheFloor) {
  for (int step = warmup; step <= steps; ++step)
    EXPECT_NEAR(rate_at(rule(RateKind::linear), step, steps),
                peak + (low - peak) * (step - warmup) / (steps - warmup), 1e-15)
        << step;
  EXPECT_DOUBLE_EQ(rate_at(rule(RateKind::linear), 10 * steps, steps), low);
}

TEST(Rate, CosineFallsAsHalfACosineToTheFloorWhereDecayEnds) {
  for (const int decay : {60, 100, 150})
    for (int step = warmup; step <= 2 * steps; ++step) {
      const double angle =
          std::numbers::pi * std::min(1.0, static_cast<double>(step - warmup) / (decay - warmup));
      EXPECT_NEAR(rate_at(rule(RateKind::cosine, decay), step, steps),
                  low + (peak - low) * (1 + std::cos(angle)) / 2, 1e-15)
          << decay << " " << step;
    }
}

TEST(Rate, InverseSquareRootHalvesWhenTheStepsQuadrupleAndStopsAtTheFloor) {
  const RateConfig r = rule(RateKind::inverse_sqrt);
  for (int step = warmup; step < 20 * warmup; ++step)
    EXPECT_NEAR(rate_at(r, step, steps), peak * std::sqrt(static_cast<double>(warmup) / (step + 1)), 1e-15)
        << step;
  EXPECT_DOUBLE_EQ(rate_at(r, 4 * warmup - 1, steps), peak / 2);
  EXPECT_DOUBLE_EQ(rate_at(r, warmup - 1, steps), peak);
  EXPECT_DOUBLE_EQ(rate_at(r, 1'000'000'000, steps), low);
}

TEST(Rate, WarmUpStableDecayFallsOverTheLastStepsOnly) {
  const RateConfig r = rule(RateKind::wsd, 20);
  for (int step = warmup; step <= 80; ++step) EXPECT_EQ(rate_at(r, step, steps), peak) << step;
  for (int step = 80; step <= steps; ++step)
    EXPECT_NEAR(rate_at(r, step, steps), peak + (low - peak) * (step - 80) / 20, 1e-15) << step;
}

TEST(Rate, StepsMultiplyItAtEachDropDownToTheFloor) {
  RateConfig r = rule(RateKind::steps);
  r.drops = {30, 60, 80};
  for (const auto& [step, drops] : {std::pair{29, 0}, {30, 1}, {59, 1}, {60, 2}})
    EXPECT_DOUBLE_EQ(rate_at(r, step, steps), std::max(low, peak * std::pow(0.2, drops))) << step;
  EXPECT_EQ(rate_at(r, 80, steps), low);
}

TEST(Rate, ARunThatIsAllWarmUpNeverLeavesIt) {
  for (RateKind kind : {RateKind::linear, RateKind::cosine, RateKind::wsd}) {
    const RateConfig r{kind, peak, low, 5, 5, {}, 0.2};
    for (int step = 0; step < 5; ++step)
      EXPECT_DOUBLE_EQ(rate_at(r, step, 5), peak * (step + 1) / 5) << name_of(kind);
    EXPECT_DOUBLE_EQ(rate_at(r, 5, 5), low) << name_of(kind);
  }
}

TEST(Rate, AWarmUpLongerThanTheRunRisesAsFarAsItComes) {
  for (RateKind kind : every_kind)
    for (int step = 0; step < 5; ++step) {
      const RateConfig r{kind, peak, low, 20, 5, {}, 0.2};
      EXPECT_DOUBLE_EQ(rate_at(r, step, 5), peak * (step + 1) / 20) << name_of(kind);
    }
}

}  // namespace
}  // namespace mindpipe
