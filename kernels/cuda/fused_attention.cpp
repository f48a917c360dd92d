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

/// Plans of one GPU. They live as long as the process: every backend of it asks the same questions, and a
/// plan takes half a second.
class CudnnPlans {
 public:
  struct Made {
    std::unique_ptr<CudnnPlan> plan;  ///< none: cuDNN refuses
    std::size_t bytes = 0;            ///< working memory, without lengths
  };
  explicit CudnnPlans(std::unique_ptr<CudnnPlanner> planner) : planner_(std::move(planner)) {}
  int version() const { return planner_->version(); }
  const Made& of(const PlannedAttention& question) {
    const auto [at, is_new] = made_.try_emplace(question);
    if (is_new) {
      AttentionAnswer answer;
      at->second.plan = planner_->plan(graph_of(question), answer);
      at->second.bytes = answer.bytes;
    }
    return at->second;
  }

 private:
  std::unique_ptr<CudnnPlanner> planner_;
  std::map<PlannedAttention, Made> made_;
};

/// The plans of this thread's GPU; none where make_cudnn_planner makes none. They are never given back: the
/// driver may be gone when a process ends.
CudnnPlans* plans_of_this_gpu() {
  static auto& all = *new std::map<int, std::unique_ptr<CudnnPlans>>();
  int gpu = 0;
  MP_CUDA(cudaGetDevice(&gpu));
  auto& plans = all[gpu];
  if (!plans)
    if (auto planner = make_cudnn_planner()) plans = std::make_unique<CudnnPlans>(std::move(planner));
  return plans.get();
}

class CudnnAttention final : public FusedAttention {
 public:
  CudnnAttention(Memory& memory, CudnnPlans& plans, const AttentionLimit& limit)
      : memory_(memory), plans_(plans), limit_(limit) {}

  int version() const override { return plans_.version(); }
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
    const auto [at, is_new] = used_.try_emplace(question);
    if (is_new) at->second = make_room(question);
    return at->second;
  }
  CudnnPlan* make_room(const PlannedAttention& question);
  void* workspace_at(std::size_t offset) {
    return offset < workspace_.size() ? workspace_.address_of(offset) : nullptr;
  }

  Memory& memory_;
  CudnnPlans& plans_;
  AttentionLimit limit_;
  /// Working memory of all plans, which run one after the other in the compute queue: lengths, then the
  /// plan's own.
  Arena workspace_;
  std::map<PlannedAttention, CudnnPlan*> used_;  ///< none: cuDNN refuses, or it wants too much
};

/// Takes the memory that a question's plan works in; none where that is more than the limit.
CudnnPlan* CudnnAttention::make_room(const PlannedAttention& question) {
  const CudnnPlans::Made& made = plans_.of(question);
  if (!made.plan) return nullptr;
  const std::size_t bytes = question.lengths_bytes() + made.bytes;
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
  return made.plan.get();
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
  CudnnPlans* plans = plans_of_this_gpu();
  return plans != nullptr ? std::make_unique<CudnnAttention>(memory, *plans, limit) : nullptr;
}

}  // namespace mindpipe::cuda
