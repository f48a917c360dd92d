#include "plan/step_range.h"
#include "config/config.h"

#include <gtest/gtest.h>

#include <cmath>

// Between which times nine of ten measured steps should lie.
namespace mindpipe {
namespace {

struct StepRanges : ::testing::Test {
  Config config;
  RunPlan plan;

  StepRanges() {
    config.device.kind = DeviceKind::cpu;
    plan.training.expected.step = 1'000'000;
  }
  /// Half the width of the range, as a share of the step, around which it lies.
  double width() const {
    const StepRange range = range_of(config, plan);
    EXPECT_EQ(range.least + range.most, 2'000'000);
    return static_cast<double>(range.most - range.least) / 2e6;
  }
};

TEST_F(StepRanges, AreWiderByADescriptionThanByAProfileAndNarrowestWhereRanksOnlyWait) {
  const double described = width();
  config.device.profile = "profile.yaml";
  const double profiled = width();
  config.device.kind = DeviceKind::emulated;
  EXPECT_GT(described, profiled);
  EXPECT_GT(profiled, width());
  EXPECT_GT(width(), 0);
}

TEST_F(StepRanges, WidenWithTheScatterOfAProfileAndWithWhatItLacks) {
  const double described = width();
  config.device.profile = "profile.yaml";
  const double still = width();
  plan.known.scatter = 0.05;
  EXPECT_NEAR(width(), std::hypot(still, 2.44 * 0.05), 1e-4);
  plan.known.estimated = 0.5;
  EXPECT_NEAR(width(), (std::hypot(still, 2.44 * 0.05) + described) / 2, 1e-4);
}

}  // namespace
}  // namespace mindpipe
