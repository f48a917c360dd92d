#pragma once
#include "cuda/fused_attention.h"
#include "cuda/gpu_operations.h"
#include "cuda/product_library.h"

namespace mindpipe {

/// All operations on one NVIDIA GPU: products and attention stand in products.cpp and attention.cpp.
class CudaBackend final : public GpuOperations {
 public:
  /// `kernels`: a table of tuned algorithms, or empty.
  CudaBackend(Memory& memory, int device, const std::string& kernels, const AttentionLimit& limit = {});

  std::string description() const override;  ///< up to the comma: what ranks have to agree on
  MINDPIPE_LIBRARY_OPERATIONS(MINDPIPE_OVERRIDE)
  void reserve(const Workspace& workspace) override;

  cuda::ProductLibrary& products() { return products_; }  ///< for `doctor --tune`
  std::string gpu() const;                                ///< the GPU's name

 private:
  void multiply(const ProductCall& call, const Tensor& w, const Tensor& in, const Tensor& result,
                const Tensor& bias, const Tensor& before);
  void attend(const AttentionCall& call, DType dtype, bool backward);

  cuda::ProductLibrary products_;
  std::unique_ptr<cuda::FusedAttention> fused_attention_;  ///< none without cuDNN
};

}  // namespace mindpipe
