#pragma once
#include "backend.h"

namespace mindpipe {

/// Hears of operations on paper and finds, from their shapes alone, the working memory that a real backend
/// will take for them.
class WorkspaceOnPaper {
 public:
  virtual ~WorkspaceOnPaper() = default;
  virtual void product(DType operands, std::int64_t rows, std::int64_t cols, std::int64_t depth) = 0;
  virtual void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                         const Tensor& log_sum, const Tensor& out) = 0;
  virtual void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k,
                                  const Heads& v, const Tensor& log_sum, const Tensor& out,
                                  const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv) = 0;
  virtual void rotary(const Heads& heads) = 0;

  const Workspace& largest() const { return largest_; }
  void forget() { largest_ = {}; }

 protected:
  Workspace largest_;
};

/// Of the GPU's backend, beside gpu_workspace_bytes: what the library takes for planned attention.
class GpuWorkspace final : public WorkspaceOnPaper {
 public:
  void product(DType, std::int64_t, std::int64_t, std::int64_t) override {}
  void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                 const Tensor& log_sum, const Tensor& out) override;
  void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                          const Tensor& log_sum, const Tensor& out, const Tensor& dout, const Heads& dq,
                          const Heads& dk, const Heads& dv) override;
  void rotary(const Heads&) override {}

 private:
  void plan(const AttentionCall& call, DType dtype, bool backward);
};

}  // namespace mindpipe
