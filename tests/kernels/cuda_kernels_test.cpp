// thorough without a GPU
#include "hardware.h"
#include "kernels/mirror.h"

/// The GPU backend on a GPU, where there is one.
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
    pairing_ = std::make_unique<mindpipe::testing::Pairing>();
    pairing_->gpu = mindpipe::make_cuda_backend(pairing_->memory, 0);
  }
  static void TearDownTestSuite() { pairing_.reset(); }

 private:
  static inline std::unique_ptr<mindpipe::testing::Pairing> pairing_;
};

#include "kernels/cuda_cases.h"
#include "make_backend.h"
