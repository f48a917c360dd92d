#pragma once
#include "cpu/isa.h"
#include "workspace_on_paper.h"

namespace mindpipe {

/// Of CpuBackend.
class CpuWorkspace final : public WorkspaceOnPaper {
 public:
  CpuWorkspace(int threads, Isa isa) : threads_(threads), isa_(isa) {}
  CpuWorkspace(int threads, const std::string& instructions)
      : CpuWorkspace(threads, choose_isa(instructions)) {}

  void product(DType operands, std::int64_t rows, std::int64_t cols, std::int64_t depth) override;
  void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                 const Tensor& log_sum, const Tensor& out) override;
  void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                          const Tensor& log_sum, const Tensor& out, const Tensor& dout, const Heads& dq,
                          const Heads& dk, const Heads& dv) override;
  void rotary(const Heads& heads) override;

 private:
  int threads_;
  Isa isa_;
};

}  // namespace mindpipe
