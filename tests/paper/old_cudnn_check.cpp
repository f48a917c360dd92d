// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paper/questions.h"
#include "plan/run_plan.h"
#include "plans/workspace_on_paper.h"

// With a cuDNN of before GPUs could be described, in place of the library: nothing is planned on paper, and
// every place where a plan would be counted says so.
namespace mindpipe {
namespace {

class OldCudnn : public testing::Test {
 protected:
  void SetUp() override {
    const auto planner = make_planner_on_paper(described_gpus().front(), why_not_);
    for (const char* reason : {"no CUDA", "no cuDNN frontend"})
      if (why_not_.find(reason) != std::string::npos) GTEST_SKIP() << why_not_;
    ASSERT_EQ(planner, nullptr) << "this is cuDNN " << planner->version();
  }
  const std::string sentence_ = "cuDNN 9.7.0 cannot plan for a GPU that is not there, as 9.8 and newer can";
  std::string why_not_;
};

TEST_F(OldCudnn, PlansForNoGpuAndSaysWhichVersionCould) {
  for (const GpuDescription& gpu : described_gpus()) {
    EXPECT_EQ(make_planner_on_paper(gpu, why_not_), nullptr) << gpu.name;
    EXPECT_EQ(why_not_, sentence_) << gpu.name;
  }
  EXPECT_EQ(gpus_with_attention(), "none: " + sentence_) << "as doctor says it";
}

TEST_F(OldCudnn, LeavesTheLedgerToTheFormulaWhichIsMarked) {
  const RunPlan plan =
      make_run_plan(resolve(read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt2-124m.yaml",
                                        {"device.kind=cuda", "device.description=h100", "grid.data=1"})));
  const Workspace& predicted = plan.footprints.at(0).passes.backend;
  std::size_t largest = 0;
  for (const PlannedAttention& question : predicted.planned)
    largest = std::max(largest, question.formula_bytes());
  EXPECT_GT(largest, std::size_t{1} << 20);
  EXPECT_EQ(predicted.attention, largest);
  EXPECT_TRUE(predicted.attention_is_estimated);
  EXPECT_EQ(source_of_attention("h100"), "estimated (" + sentence_ + ")");
}

}  // namespace
}  // namespace mindpipe
