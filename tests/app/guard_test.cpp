#include "app/train/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// A guard with these rules, that hears of one step after the other.
struct Heard {
  explicit Heard(const GuardConfig& rules, const RunProgress& begun = {}) : guard(rules, begun) {}
  void step(double loss, bool applied = true, std::int64_t valid = 8) {
    guard.hear(StepScalars{.step = next++, .loss = loss, .valid = valid, .applied = applied});
  }
  void bad() { step(std::nan(""), false); }

  Guard guard;
  std::int64_t next = 0;
};

TEST(Guard, CountsStepsThatAreNotFiniteInARow) {
  Heard heard({.skips = 3});
  for (int i = 0; i < 5; ++i) {
    heard.bad();
    heard.bad();
    EXPECT_FALSE(heard.guard.is_in_trouble());
    heard.step(2);
  }
  heard.bad();
  heard.step(0, false, 0);
  EXPECT_FALSE(heard.guard.is_in_trouble());
  heard.step(3, false);
  EXPECT_FALSE(heard.guard.is_in_trouble()) << "a step without a target that counts is none of them";
  heard.bad();
  EXPECT_EQ(heard.guard.found_at(), 18);
  EXPECT_EQ(heard.guard.trouble(),
            "step 19: the loss is nan, 3 steps in a row changed nothing (guard.skips)");
  heard.step(5, false);
  EXPECT_EQ(heard.guard.found_at(), 18) << "a device that has run ahead changes nothing";
}

TEST(Guard, SaysWhereALossIsFiniteAndItsGradientIsNot) {
  Heard heard({.skips = 1});
  heard.step(2, false);
  EXPECT_THAT(heard.guard.trouble(), HasSubstr("step 1: a gradient is not finite, 1 steps in a row"));
}

TEST(Guard, FindsLossesThatJumpAndComparesThemWithAcceptedOnesAlone) {
  Heard heard({.skips = 100, .spike = 10});
  for (int i = 0; i < 63; ++i) heard.step(i % 2 == 0 ? 2.0 : 2.2);
  heard.step(1e6);
  EXPECT_FALSE(heard.guard.is_in_trouble()) << "too few to compare with";

  Heard other({.skips = 1000, .spike = 10});
  for (int i = 0; i < 65; ++i) other.step(i % 2 == 0 ? 2.0 : 2.4);
  for (int i = 0; i < 200; ++i) other.bad();
  other.step(2.0 + 0.4 + 10 * 0.2);
  EXPECT_FALSE(other.guard.is_in_trouble()) << "200 steps that changed nothing are in no window";
  other.step(50);
  EXPECT_THAT(other.guard.trouble(), HasSubstr("step 267: the loss is 50.0000, "));
  EXPECT_THAT(other.guard.trouble(), HasSubstr("median absolute deviations above "));
  EXPECT_THAT(other.guard.trouble(), HasSubstr("the median of the 64 before (guard.spike)"));
}

TEST(Guard, WithoutAScaleNoLossJumps) {
  Heard heard({.spike = 1});
  for (int i = 0; i < 64; ++i) heard.step(2);
  heard.step(1e9);
  EXPECT_FALSE(heard.guard.is_in_trouble());
}

TEST(Guard, ARunThatGoesOnJudgesAsTheOneThatNeverStopped) {
  const GuardConfig rules{.skips = 3, .spike = 4};
  Heard whole(rules);
  for (int i = 0; i < 100; ++i) whole.step(2 + std::sin(i));
  whole.bad();
  whole.bad();
  RunProgress progress;
  whole.guard.add_to(progress);
  EXPECT_EQ(progress.accepted_losses.size(), RunProgress::most_losses);
  Heard resumed(rules, progress);
  resumed.next = whole.next;
  for (Heard* each : {&whole, &resumed}) {
    each->bad();
    EXPECT_THAT(each->guard.trouble(), HasSubstr("step 103: the loss is nan, 3 steps in a row"));
    each->guard.go_on_from(progress);
    EXPECT_FALSE(each->guard.is_in_trouble());
    each->step(50);
    EXPECT_THAT(each->guard.trouble(), HasSubstr("step 104: the loss is 50.0000, "));
  }
  EXPECT_EQ(whole.guard.trouble(), resumed.guard.trouble());
}

TEST(Guard, CountsSubnetsThatUpdatedNothing) {
  Guard guard({.skips = 2}, {});
  const auto hear = [&](std::int64_t subnet, std::int64_t skipped, std::int64_t valid = 8) {
    guard.hear(SubnetScalars{.subnet = subnet, .losses = 16, .valid = valid, .units = 5, .skipped = skipped});
  };
  hear(0, 5);
  hear(1, 4);
  hear(2, 5);
  hear(3, 0, 0);
  EXPECT_FALSE(guard.is_in_trouble());
  hear(4, 5);
  EXPECT_EQ(guard.found_at(), 4);
}

}  // namespace
}  // namespace mindpipe
