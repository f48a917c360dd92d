#include "app/train/plan_drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "plan/run_plan.h"
#include "runtime/small_models.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(PlanDrift, ThePartsOfAPlannedStepAreTheWholeStepOfEachRank) {
  Config config = gpt2_style();
  config.grid = {1, 2, 1, 1};
  const RunPlan plan = make_run_plan(resolve(config));
  for (int rank = 0; rank < 2; ++rank) {
    const StepParts parts = planned_parts(plan.training, rank);
    const auto busy = static_cast<double>(plan.training.expected.busy[rank]);
    EXPECT_DOUBLE_EQ(parts.all(), static_cast<double>(plan.training.expected.step));
    EXPECT_GT(parts.forward, 0);
    EXPECT_GT(parts.backward, parts.forward);
    EXPECT_GT(parts.update, 0);
    EXPECT_LE(parts.forward + parts.backward + parts.update, busy + 1);
  }
}

TEST(PlanDrift, MeasuredPassesHaveTheirWaitsForTensorRanks) {
  TimeSpent spent;
  spent.forward = 200;
  spent.backward = 600;
  spent.wait_tensor = 80;
  spent.update = 40;
  const StepParts parts = measured_parts(spent, 2, 1e-6);
  EXPECT_DOUBLE_EQ(parts.forward, 110);
  EXPECT_DOUBLE_EQ(parts.backward, 330);
  EXPECT_DOUBLE_EQ(parts.update, 20);
  EXPECT_DOUBLE_EQ(parts.all(), 1000);
}

TEST(PlanDrift, NamesTheKindOfWorkThatIsFarthestOffAndWhatToDo) {
  const StepParts planned{100e6, 200e6, 10e6, 50e6};
  StepParts measured = planned;
  measured.backward = 260e6;
  measured.update = 20e6;
  EXPECT_THAT(
      drift_text(planned, measured, 0.36, 0.43, "the device core", false),
      AllOf(HasSubstr("a step takes 430.0 ms and was planned as 360.0 ms (+19.4 %)"),
            HasSubstr("farthest off are backward passes, 260.0 ms a step on rank 0 and 200.0 ms in the plan"),
            HasSubstr("priced by the device core: measure this machine with mindpipe-train profile")));
  measured = planned;
  measured.rest = 5e6;
  EXPECT_THAT(drift_text(planned, measured, 0.36, 0.315, "the profile p.yaml", true),
              AllOf(HasSubstr("(-12.5 %)"), HasSubstr("waits for other ranks"),
                    HasSubstr("measure them again with mindpipe-train profile")));
}

}  // namespace
}  // namespace mindpipe
