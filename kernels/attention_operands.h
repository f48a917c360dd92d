#pragma once
#include "attention_views.h"
#include "backend.h"

namespace mindpipe {

/// Checks the operands of Backend::attention and says where they lie, whichever device they are on.
AttentionCall attention_call(const AttentionQuestion& question, const Heads& q, const Heads& k,
                             const Heads& v, const Tensor& log_sum, const Tensor& out);
/// The same for Backend::attention_backward.
AttentionCall attention_backward_call(const AttentionQuestion& question, const Heads& q, const Heads& k,
                                      const Heads& v, const Tensor& log_sum, const Tensor& out,
                                      const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv);

}  // namespace mindpipe
