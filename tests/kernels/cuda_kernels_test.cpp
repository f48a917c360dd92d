// thorough without a GPU
#include "cuda/gpu_description.h"
#include "cuda/gpu_operations.h"
#include "hardware.h"
#include "kernels/mirror.h"

/// Kernels of our own, without NVIDIA's libraries.
class KernelsAlone final : public mindpipe::GpuOperations {
 public:
  using GpuOperations::GpuOperations;
#define MINDPIPE_REFUSED(name, Operands)                                           \
  void name(const mindpipe::Operands&) override {                                  \
    mindpipe::fail(mindpipe::Exit::internal, "{} is no kernel of our own", #name); \
  }
  MINDPIPE_LIBRARY_OPERATIONS(MINDPIPE_REFUSED)
#undef MINDPIPE_REFUSED
};

/// The kernels on a GPU, where there is one.
class Cuda : public ::testing::Test {
 public:
  static mindpipe::testing::Pairing& pairing() { return *pairing_; }
  template <class Run>
  void for_orders(const Run& run) {
    run();
  }

 protected:
  void SetUp() override {
    if (mindpipe::gpu_count() == 0)
      GTEST_SKIP() << "no GPU that this process may use: " << mindpipe::gpu_devices();
    if (pairing_) return;
    fmt::print("description of this GPU: {}\n", mindpipe::cuda::gpu_description(0));
    pairing_ = std::make_unique<mindpipe::testing::Pairing>();
    pairing_->gpu = std::make_unique<KernelsAlone>(pairing_->memory, 0);
  }
  static void TearDownTestSuite() { pairing_.reset(); }

 private:
  static inline std::unique_ptr<mindpipe::testing::Pairing> pairing_;
};

#include "kernels/cuda_cases.h"
