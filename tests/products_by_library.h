#pragma once
#include <cstdlib>
#include <memory>
#include <utility>

#include "backend_over.h"
#include "cuda/multiply.h"

namespace mindpipe {

/// A processor's backend whose products are a GPU's: what the GPU backend asks of cuBLASLt, and what it does
/// itself where it gets no answer. For programs that are linked with a library that stands in for cuBLASLt.
class ProductsByLibrary final : public BackendOver {
 public:
  explicit ProductsByLibrary(std::unique_ptr<Backend> device) : BackendOver(std::move(device)) {}

  std::string description() const override { return "library's products on " + device_->description(); }
  void linear(const LinearOperands& o) override {
    if (const ProductCall call = o.checked(); call.n > 0)
      cuda::multiply(library_, call, 0, o.w, o.x, o.y, o.bias, o.before, workspace_.get(), nullptr);
  }
  void linear_backward_input(const LinearBackwardInputOperands& o) override {
    if (const ProductCall call = o.checked(); call.n > 0)
      cuda::multiply(library_, call, 0, o.w, o.dy, o.dx, {}, o.before, workspace_.get(), nullptr);
  }
  void linear_backward_weight(const LinearBackwardWeightOperands& o) override {
    if (const ProductCall call = o.checked(); call.n > 0)
      cuda::multiply_gradient(library_, call, 0, o.x, o.dy, o.dw, workspace_.get(), nullptr);
    else device_->linear_backward_weight(o);
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  cuda::ProductLibrary library_;
  /// Beside the ledger, which counts that of the processor's backend.
  std::unique_ptr<void, Free> workspace_{std::aligned_alloc(alignment, cuda::multiply_bytes)};
};

}  // namespace mindpipe
