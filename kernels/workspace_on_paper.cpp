#include "workspace_on_paper.h"

#include "attention_operands.h"

namespace mindpipe {

void GpuWorkspace::plan(const AttentionCall& call, DType dtype, bool backward) {
  if (!is_planned(call, dtype)) return;
  const PlannedAttention planned(call, backward);
  Workspace wanted;
  wanted.attention = planned.most_bytes();
  wanted.planned.insert(planned);
  largest_.include(wanted);
}

void GpuWorkspace::attention(const AttentionQuestion& question, const Heads& q, const Heads& k,
                             const Heads& v, const Tensor& log_sum, const Tensor& out) {
  plan(attention_call(question, q, k, v, log_sum, out), q.data.dtype, false);
}

void GpuWorkspace::attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k,
                                      const Heads& v, const Tensor& log_sum, const Tensor& out,
                                      const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
  plan(attention_backward_call(question, q, k, v, log_sum, out, dout, dq, dk, dv), q.data.dtype, true);
}

}  // namespace mindpipe
