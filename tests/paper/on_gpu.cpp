// thorough without a GPU
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cuda/cudnn_planner.h"
#include "hardware.h"
#include "make_backend.h"
#include "paper/questions.h"

/// On a GPU: what it is beside its description in data/devices, and whether cuDNN plans for it what it plans
/// on paper.
using namespace mindpipe;

namespace {

class CudaPaper : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU that this process may use: " << gpu_devices();
    backend_ = make_cuda_backend(memory_, 0);
    planner_ = cuda::make_cudnn_planner();
    if (!planner_) GTEST_SKIP() << "no cuDNN that this build can use";
    here_ = nlohmann::json::parse(std::string(planner_->properties().c_str()));
    fmt::print("description of this GPU: {}\n", here_.dump());
    for (const GpuDescription& gpu : described_gpus())
      if (nlohmann::json::parse(gpu.properties).at("deviceName") == here_.at("deviceName")) described_ = &gpu;
    if (described_ == nullptr) return fmt::print("data/devices does not describe this GPU\n");
    say_differences(nlohmann::json::parse(described_->properties));
  }
  /// A description that a machine contradicts is news, and no failure: plans are asked all the same.
  void say_differences(const nlohmann::json& described) const {
    for (const auto& [member, value] : here_.items())
      if (!described.contains(member) || described.at(member) != value)
        fmt::print("{} is {} here, and {} in data/devices/{}.json\n", member, value.dump(),
                   described.contains(member) ? described.at(member).dump() : "missing", described_->name);
  }
  Memory memory_{Memory::Kind::device};
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<cuda::CudnnPlanner> planner_;
  nlohmann::json here_;
  const GpuDescription* described_ = nullptr;
};

TEST_F(CudaPaper, PlansAreThoseOnPaper) {
  if (described_ == nullptr) return;  // a description of it stands above
  std::string why_not;
  const auto paper = make_planner_on_paper(*described_, why_not);
  ASSERT_TRUE(paper) << why_not;
  for (const PaperQuestion& asked : questions_of_a_check()) {
    const AttentionAnswer real = planner_->ask(graph_of(asked.question)),
                          on_paper = paper->ask(graph_of(asked.question));
    SCOPED_TRACE(fmt::format("{}: {}", asked.from, asked.question.text()));
    EXPECT_EQ(real.is_planned, on_paper.is_planned) << real.refusal << on_paper.refusal;
    EXPECT_EQ(real.engine, on_paper.engine);
    EXPECT_EQ(real.bytes, on_paper.bytes);
  }
}

}  // namespace
