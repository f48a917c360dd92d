#include "cuda/fused_attention.h"

#include <map>

#include "core/log.h"
#include "cuda/cudnn_planner.h"
#include "cuda/device/padding.h"
#include "cuda/error.h"

namespace mindpipe::cuda {
namespace {

using Id = AttentionGraph::Id;

CudnnPlan::Addresses addresses_of(const AttentionCall& c, bool backward) {
  CudnnPlan::Addresses operands{{Id::q, c.q.data},
                                {Id::k, c.k.data},
                                {Id::v, c.v.data},
                                {Id::out, c.out.data},
                                {Id::log_sum, c.log_sum}};
  if (backward)
    operands.insert({{Id::dout, c.dout.data}, {Id::dq, c.dq.data}, {Id::dk, c.dk.data}, {Id::dv, c.dv.data}});
  if (c.key_lengths != nullptr) operands.insert({Id::key_lengths, const_cast<std::int32_t*>(c.key_lengths)});
  return operands;
}

class CudnnAttention final : public FusedAttention {
 public:
  CudnnAttention(Memory& memory, std::unique_ptr<CudnnPlanner> planner, const AttentionLimit& limit)
      : memory_(memory), planner_(std::move(planner)), limit_(limit) {}

  int version() const override { return planner_->version(); }
  void plan(const std::set<PlannedAttention>& questions) override {
    for (const PlannedAttention& question : questions) plan_of(question);
  }
  bool forward(const AttentionCall& call, cudaStream_t stream) override {
    return answer(call, false, stream);
  }
  bool backward(const AttentionCall& call, cudaStream_t stream) override {
    return answer(call, true, stream);
  }

 private:
  bool answer(const AttentionCall& call, bool backward, cudaStream_t stream);
  CudnnPlan* plan_of(const PlannedAttention& question) {
    const auto [at, is_new] = plans_.try_emplace(question);
    if (is_new) at->second = make_plan(question);
    return at->second.get();
  }
  std::unique_ptr<CudnnPlan> make_plan(const PlannedAttention& question);
  void* workspace_at(std::size_t offset) {
    return offset < workspace_.size() ? workspace_.address_of(offset) : nullptr;
  }

  Memory& memory_;
  std::unique_ptr<CudnnPlanner> planner_;
  AttentionLimit limit_;
  /// Working memory of all plans, which run one after the other in the compute queue: lengths, then the
  /// plan's own.
  Arena workspace_;
  std::map<PlannedAttention, std::unique_ptr<CudnnPlan>> plans_;  ///< none: cuDNN refuses
};

std::unique_ptr<CudnnPlan> CudnnAttention::make_plan(const PlannedAttention& question) {
  AttentionAnswer answer;
  std::unique_ptr<CudnnPlan> plan = planner_->plan(graph_of(question), answer);
  if (!plan) return nullptr;
  const std::size_t bytes = question.lengths_bytes() + answer.bytes;
  if (bytes > limit_.most) {
    warning(
        "cudnn: the {} would take {} bytes of working memory, more than device.attention_workspace ({}); our "
        "own kernel computes it",
        question.text(), bytes, limit_.most);
    return nullptr;
  }
  if (workspace_.size() < bytes) {
    MP_CUDA(cudaDeviceSynchronize());  // calls that use the smaller one may be under way
    workspace_ = Arena();
    workspace_ = Arena(memory_, MemoryClass::workspace, aligned(bytes));
  }
  return plan;
}

/// Pieces take their turns in one workspace.
bool CudnnAttention::answer(const AttentionCall& call, bool backward, cudaStream_t stream) {
  const auto pieces = pieces_of(call, backward, limit_);
  if (!pieces) return false;
  const PlannedAttention question(call, backward, *pieces);
  CudnnPlan* plan = plan_of(question);
  if (plan == nullptr) return false;
  CudnnPlan::Addresses lengths;
  const auto tell = [&](Id id, std::size_t offset, std::int64_t rows) {
    auto* at = static_cast<std::int32_t*>(workspace_at(offset));
    fill_lengths(at, question.samples, static_cast<std::int32_t>(rows), stream);
    lengths.insert({id, at});
  };
  if (question.padded) {
    tell(Id::query_lengths, 0, call.queries);
    if (call.key_lengths == nullptr) tell(Id::key_lengths, question.one_length_bytes(), call.keys);
  }
  for (int number = 0; number < pieces->count(); ++number) {
    CudnnPlan::Addresses operands = addresses_of(piece_of(call, *pieces, number, DType::bf16), backward);
    operands.insert(lengths.begin(), lengths.end());
    const std::string failure = plan->run(operands, workspace_at(question.lengths_bytes()), stream);
    MP_REQUIRE(failure.empty(), Exit::internal,
               "cudnn: the {} failed ({}); run once more with CUDNN_LOGLEVEL_DBG=3 "
               "CUDNN_LOGDEST_DBG=stderr, which says why, and report it",
               question.text(), failure);
  }
  return true;
}

}  // namespace

std::unique_ptr<FusedAttention> make_fused_attention(Memory& memory, const AttentionLimit& limit) {
  auto planner = make_cudnn_planner();
  return planner ? std::make_unique<CudnnAttention>(memory, std::move(planner), limit) : nullptr;
}

}  // namespace mindpipe::cuda
