#include <gtest/gtest.h>

#define make_cudnn_planner make_counting_planner
#include "cuda/fused_attention.cpp"  // over the runtime of cuda_on_host, and over a planner that counts
#undef make_cudnn_planner
#include "cuda/queues.h"

/// How often cuDNN is asked for plans: once in a process for each question, however many backends are made.
namespace mindpipe::cuda {
namespace {

struct Counts {
  int planners = 0, plans = 0, runs = 0, given_back = 0;
} counts;

class CountedPlan final : public CudnnPlan {
 public:
  ~CountedPlan() override { ++counts.given_back; }
  std::string run(const Addresses&, void*, cudaStream_t) override { return ++counts.runs, ""; }
};

/// Refuses what has 24 keys.
class CountedPlanner final : public CudnnPlanner {
 public:
  ~CountedPlanner() override { ++counts.given_back; }
  int version() const override { return 91900; }
  AttentionAnswer ask(const AttentionGraph&) override { return {}; }
  std::unique_ptr<CudnnPlan> plan(const AttentionGraph& graph, AttentionAnswer& answer) override {
    ++counts.plans;
    answer.bytes = graph.backward ? 4096 : 0;
    for (const AttentionGraph::Tensor& tensor : graph.tensors)
      if (tensor.id == AttentionGraph::Id::k && tensor.extents[2] == 24) return nullptr;
    return std::make_unique<CountedPlan>();
  }
  std::string properties() override { return ""; }
};

/// Packed heads of a shard of the model, which is the same on every layout.
AttentionCall call_of(std::int64_t samples, std::int64_t keys) {
  const HeadsView view{nullptr, keys * 3 * 256, 3 * 256};
  return {.samples = samples,
          .query_heads = 4,
          .key_heads = 4,
          .queries = keys,
          .keys = keys,
          .width = 64,
          .causal = true,
          .q = view,
          .k = view,
          .v = view,
          .out = view,
          .dout = view,
          .dq = view,
          .dk = view,
          .dv = view};
}

TEST(CudnnPlansOfAProcess, AreMadeOnceForAllLayouts) {
  const AttentionCall calls[] = {call_of(2, 128), call_of(4, 128), call_of(2, 24)};
  const std::set<PlannedAttention> questions = {
      PlannedAttention(calls[0], false), PlannedAttention(calls[0], true), PlannedAttention(calls[1], false)};
  Handle<StreamTraits> stream;
  ASSERT_EQ(cudaStreamCreateWithPriority(stream.receive(), cudaStreamNonBlocking, 0), cudaSuccess);
  for (int layout = 1; layout <= 5; ++layout) {
    Memory memory(Memory::Kind::device);
    const auto attention = make_fused_attention(memory, {});
    ASSERT_TRUE(attention);
    attention->plan(questions);
    for (int step = 0; step < 2; ++step) {
      EXPECT_TRUE(attention->forward(calls[0], stream.get()) && attention->backward(calls[0], stream.get()) &&
                  attention->forward(calls[1], stream.get()));
      EXPECT_FALSE(attention->forward(calls[2], stream.get())) << "a refusal is remembered too";
    }
    EXPECT_EQ(counts.planners, 1) << "on layout " << layout;
    EXPECT_EQ(counts.plans, 4) << "on layout " << layout;
    EXPECT_EQ(counts.runs, 6 * layout);
  }
  Memory memory(Memory::Kind::device);
  EXPECT_TRUE(make_fused_attention(memory, {})->backward(calls[1], stream.get()));
  EXPECT_EQ(counts.plans, 5) << "another question is asked when it comes";
  EXPECT_EQ(counts.given_back, 0);
}

}  // namespace

std::unique_ptr<CudnnPlanner> make_counting_planner() {
  ++counts.planners;
  return std::make_unique<CountedPlanner>();
}

}  // namespace mindpipe::cuda
