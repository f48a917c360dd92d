#include "cpu/attention.h"
#include "cpu/products.h"
#include "cpu/rotary_table.h"
#include "plans/workspace_on_paper.h"

namespace mindpipe {
namespace {

class CpuWorkspace final : public WorkspaceOnPaper {
 public:
  CpuWorkspace(int threads, Isa isa) : threads_(threads), isa_(isa) {}

  void product(DType operands, std::int64_t rows, std::int64_t cols, std::int64_t depth) override {
    if (operands == DType::f64) return;  // plain loops
    const ProductKernels& kernels = choose_product_kernels(isa_, operands == DType::bf16);
    largest_.include({.products = product_workspace(kernels, rows, cols, depth, threads_)});
  }
  void attention(const AttentionOperands& o) override {
    const AttentionCall call = o.checked();
    const AttentionKernels& kernels = choose_attention_kernels(isa_, o.q.data.dtype, is_few(call));
    largest_.include({.attention = attention_scratch(kernels, threads_, call)});
  }
  void attention_backward(const AttentionBackwardOperands& o) override {
    const AttentionKernels& kernels = choose_attention_kernels(isa_, o.q.data.dtype);
    largest_.include({.attention = attention_backward_scratch(kernels, threads_, o.forward().checked())});
  }
  void rotary(const Heads& heads) override {
    largest_.include({.rotary = RotaryTable::bytes_for(heads.data.shape[3], heads.data.shape[1])});
  }

 private:
  int threads_;
  Isa isa_;
};

}  // namespace

std::unique_ptr<WorkspaceOnPaper> make_cpu_workspace(int threads, const std::string& instructions) {
  return std::make_unique<CpuWorkspace>(threads, choose_isa(instructions));
}

}  // namespace mindpipe
