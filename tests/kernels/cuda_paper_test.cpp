#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cuda/cudnn_planner.h"
#include "hardware.h"
#include "make_backend.h"

/// On a GPU: whether it is what data/devices says, and whether cuDNN plans for it what it plans on paper.
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
    for (const GpuDescription& gpu : described_gpus())
      if (nlohmann::json::parse(gpu.properties).at("deviceName") == here_.at("deviceName")) described_ = &gpu;
    if (described_ == nullptr)
      GTEST_SKIP() << "data/devices does not describe this GPU; it would be " << here_.dump();
  }
  Memory memory_{Memory::Kind::device};
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<cuda::CudnnPlanner> planner_;
  nlohmann::json here_;
  const GpuDescription* described_ = nullptr;
};

TEST_F(CudaPaper, TheGpuIsWhatItsDescriptionSays) {
  const auto wanted = nlohmann::json::parse(described_->properties);
  for (const auto& [member, value] : here_.items()) {
    if (member == "driverVer" || member == "cudaDeviceId" || member == "pciDeviceId") continue;
    ASSERT_TRUE(wanted.contains(member)) << member << " is " << value << " here";
    EXPECT_EQ(value, wanted.at(member)) << member << ": correct data/devices/" << described_->name << ".json";
  }
}

TEST_F(CudaPaper, PlansAreThoseOnPaper) {
  std::string why_not;
  const auto paper = make_planner_on_paper(*described_, why_not);
  ASSERT_TRUE(paper) << why_not;
  static const std::int32_t lengths[4] = {};
  struct Shape {
    std::int64_t samples, query_heads, key_heads, rows, width;
    bool causal, padded;
  };
  for (const Shape& s : {Shape{4, 12, 12, 1024, 64, true, false}, Shape{1, 8, 2, 8192, 128, true, false},
                         Shape{2, 8, 8, 100, 64, false, true}, Shape{2, 4, 2, 1000, 128, true, false},
                         Shape{2, 4, 4, 64, 16, true, false}, Shape{2, 4, 4, 1024, 80, true, false}})
    for (const bool backward : {false, true}) {
      AttentionCall call;
      call.samples = s.samples;
      call.query_heads = s.query_heads;
      call.key_heads = s.key_heads;
      call.queries = call.keys = s.rows;
      call.width = s.width;
      call.causal = s.causal;
      call.scale = 0.125;
      call.key_lengths = s.padded ? lengths : nullptr;
      const std::int64_t row = (s.query_heads + 2 * s.key_heads) * s.width, out = s.query_heads * s.width;
      call.q = call.k = call.v = call.dq = call.dk = call.dv = {nullptr, s.rows * row, row};
      call.out = call.dout = {nullptr, s.rows * out, out};
      const PlannedAttention question(call, backward);
      const AttentionAnswer real = planner_->ask(graph_of(question)),
                            on_paper = paper->ask(graph_of(question));
      SCOPED_TRACE(question.text());
      EXPECT_EQ(real.is_planned, on_paper.is_planned) << real.refusal << on_paper.refusal;
      EXPECT_EQ(real.engine, on_paper.engine);
      EXPECT_EQ(real.bytes, on_paper.bytes);
    }
}

}  // namespace
