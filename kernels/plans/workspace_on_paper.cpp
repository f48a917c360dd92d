#include "plans/workspace_on_paper.h"

namespace mindpipe {
namespace {

class GpuWorkspace final : public WorkspaceOnPaper {
 public:
  void product(DType, std::int64_t, std::int64_t, std::int64_t) override {}
  void attention(const AttentionOperands& o) override { plan(o.checked(), o.q.data.dtype, false); }
  void attention_backward(const AttentionBackwardOperands& o) override {
    plan(o.checked(), o.q.data.dtype, true);
  }
  void rotary(const Heads&) override {}

 private:
  void plan(const AttentionCall& call, DType dtype, bool backward) {
    if (!is_planned(call, dtype)) return;
    const PlannedAttention planned(call, backward);
    largest_.include({.attention = planned.most_bytes(), .planned = {planned}});
  }
};

}  // namespace

std::unique_ptr<WorkspaceOnPaper> make_gpu_workspace() { return std::make_unique<GpuWorkspace>(); }

}  // namespace mindpipe
