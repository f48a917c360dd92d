#pragma once
#include "backend.h"
#include "cpu/isa.h"

namespace mindpipe {

/// The working memory that CpuBackend takes for operations, found from their operands' shapes alone: for operations on paper,
/// whose tensors have no memory.
class CpuWorkspace {
 public:
  CpuWorkspace(int threads, Isa isa) : threads_(threads), isa_(isa) {}
  CpuWorkspace(int threads, const std::string& instructions) : CpuWorkspace(threads, choose_isa(instructions)) {}

  void product(DType operands, std::int64_t rows, std::int64_t cols, std::int64_t depth);
  void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v, const Tensor& log_sum,
                 const Tensor& out, bool backward);
  void rotary(const Heads& heads);
  const Workspace& largest() const { return largest_; }
  void forget() { largest_ = {}; }

 private:
  int threads_;
  Isa isa_;
  Workspace largest_;
};

}  // namespace mindpipe
