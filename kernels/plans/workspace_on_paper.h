#pragma once
#include <memory>
#include <string>

#include "operations/attention.h"
#include "plans/workspace.h"

namespace mindpipe {

/// Finds, from the shapes of operations on paper, the working memory that a real backend will take for them.
class WorkspaceOnPaper {
 public:
  virtual ~WorkspaceOnPaper() = default;
  virtual void product(DType operands, std::int64_t rows, std::int64_t cols, std::int64_t depth) = 0;
  virtual void attention(const AttentionOperands& operands) = 0;
  virtual void attention_backward(const AttentionBackwardOperands& operands) = 0;
  virtual void rotary(const Heads& heads) = 0;

  const Workspace& largest() const { return largest_; }
  void forget() { largest_ = {}; }

 protected:
  Workspace largest_;
};

/// What the CPU's backend takes on `threads` threads, with `instructions` as in make_cpu_backend.
std::unique_ptr<WorkspaceOnPaper> make_cpu_workspace(int threads, const std::string& instructions);
/// What CUDA's backend takes for planned attention, beside gpu_workspace_bytes: as much as the library says
/// that it would take on `device` (a name of data/devices), wherever it can be asked, else as the formula
/// says.
std::unique_ptr<WorkspaceOnPaper> make_gpu_workspace(const AttentionLimit& limit = {},
                                                     const std::string& device = {});
/// Who said what attention takes: "cuDNN 9.19.0 on paper", or "estimated (why)".
std::string source_of_attention(const std::string& device);
/// For which described GPUs a library that is here would plan attention: "a100, h100, h200 (cuDNN 9.19.0)",
/// or "none: " and why.
std::string gpus_with_attention();

}  // namespace mindpipe
