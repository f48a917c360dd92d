#pragma once
#include "cuda/fused_attention.h"
#include "cuda/gpu_operations.h"
#include "cuda/product_library.h"

namespace mindpipe {

/// All operations on one NVIDIA GPU: products and attention stand in products.cpp and attention.cpp.
class CudaBackend final : public GpuOperations {
 public:
  /// Makes the operations of a GPU. `kernels`: a table of tuned algorithms, or empty. `reserved`:
  /// multiprocessors that products leave alone.
  CudaBackend(Memory& memory, int device, const std::string& kernels, const AttentionLimit& limit = {},
              int reserved = 0);

  std::string description() const override;
  MINDPIPE_LIBRARY_OPERATIONS(MINDPIPE_OVERRIDE)
  void reserve(const Workspace& workspace) override;

  cuda::ProductLibrary& products() { return products_; }  ///< for `doctor --tune`
  int processors() const { return processors_; }          ///< ProductKey::processors of its products
  std::string gpu() const;                                ///< the GPU's name

 private:
  void attend(const AttentionCall& call, DType dtype, bool backward);

  int processors_;
  cuda::ProductLibrary products_;
  std::unique_ptr<cuda::FusedAttention> fused_attention_;  ///< none without cuDNN
};

}  // namespace mindpipe
