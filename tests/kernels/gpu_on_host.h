#pragma once
#include "cuda/gpu_operations.h"

namespace mindpipe {

/// The GPU's operations, but for products and attention, which are the CPU's.
class GpuOnHost final : public GpuOperations {
 public:
  GpuOnHost(Memory& memory, Backend& cpu) : GpuOperations(memory, 0), cpu_(cpu) {}
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
