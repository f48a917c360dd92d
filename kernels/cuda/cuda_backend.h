#pragma once
#include "cuda/fused_attention.h"
#include "cuda/gpu_operations.h"
#include "cuda/product_library.h"

namespace mindpipe {

/// The operations on one NVIDIA GPU: products and attention, which stand in products.cpp and attention.cpp,
/// and all others.
class CudaBackend final : public GpuOperations {
 public:
  /// `kernels`: a table of tuned algorithms, or empty.
  CudaBackend(Memory& memory, int device, const std::string& kernels);

  std::string description() const override;  ///< up to the comma: what ranks have to agree on
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
              const Tensor& before, const Tensor& y) override;
  void linear_backward_input(const Tensor& dy, const Tensor& w, Activation activation, const Tensor& before,
                             const Tensor& dx) override;
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) override;
  void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                 const Tensor& log_sum, const Tensor& out) override;
  void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                          const Tensor& log_sum, const Tensor& out, const Tensor& dout, const Heads& dq,
                          const Heads& dk, const Heads& dv) override;

  void reserve(const Workspace& workspace) override;

  cuda::ProductLibrary& products() { return products_; }  ///< for `doctor --tune`
  std::string gpu() const;                                ///< its name

 private:
  cuda::ProductLibrary products_;
  std::unique_ptr<cuda::FusedAttention> fused_attention_;  ///< none without cuDNN
};

}  // namespace mindpipe
