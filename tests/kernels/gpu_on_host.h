#pragma once
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "cuda/gpu_operations.h"
#include "emulated/gpu_work.h"

namespace mindpipe {

/// The GPU's operations, but for products and attention, which are the CPU's. Each starts as many kernels as
/// the ledger of bytes and launches counts for it.
class GpuOnHost final : public GpuOperations {
 public:
  GpuOnHost(Memory& memory, Backend& cpu) : GpuOperations(memory, 0), cpu_(cpu) {}
#define MINDPIPE_COUNTED(name, Operands)                                                 \
  void name(const Operands& operands) override {                                         \
    const int before = on_host::kernels_started();                                       \
    GpuOperations::name(operands);                                                       \
    EXPECT_EQ(on_host::kernels_started() - before, gpu_work(operands).kernels) << #name; \
  }
  MINDPIPE_OWN_OPERATIONS(MINDPIPE_COUNTED)
#undef MINDPIPE_COUNTED
#define MINDPIPE_ON_CPU(name, Operands)          \
  void name(const Operands& operands) override { \
    synchronize();                               \
    cpu_.name(operands);                         \
  }
  MINDPIPE_LIBRARY_OPERATIONS(MINDPIPE_ON_CPU)
#undef MINDPIPE_ON_CPU

 private:
  Backend& cpu_;
};

}  // namespace mindpipe
