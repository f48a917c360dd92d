#include "cuda/gpu_operations.h"

#include "kernels/mirror.h"

/// The GPU backend's own kernels on the host: every thread of every block, in two orders, on the runtime of tests/kernels/cuda_on_host.
using namespace mindpipe;

/// Its products and attention are the CPU's.
class GpuOnHost final : public GpuOperations {
 public:
  GpuOnHost(Memory& memory, Backend& cpu) : GpuOperations(memory, 0), cpu_(cpu) {}
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation, const Tensor& before, const Tensor& y) override {
    synchronize();
    cpu_.linear(x, w, bias, activation, before, y);
  }
  void linear_backward_input(const Tensor& dy, const Tensor& w, Activation activation, const Tensor& before, const Tensor& dx) override {
    synchronize();
    cpu_.linear_backward_input(dy, w, activation, before, dx);
  }
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) override {
    synchronize();
    cpu_.linear_backward_weight(dy, x, dw);
  }
  void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v, const Tensor& log_sum, const Tensor& out) override {
    synchronize();
    cpu_.attention(question, q, k, v, log_sum, out);
  }
  void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v, const Tensor& log_sum, const Tensor& out,
                          const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv) override {
    synchronize();
    cpu_.attention_backward(question, q, k, v, log_sum, out, dout, dq, dk, dv);
  }

 private:
  Backend& cpu_;
};

class Cuda : public ::testing::Test {
 public:
  static mindpipe::testing::Pairing& pairing() { return *pairing_; }
  template <class Run>
  void for_orders(const Run& run) {
    for (bool backwards : {false, true}) {
      SCOPED_TRACE(backwards ? "backwards" : "forwards");
      on_host::run_backwards(backwards);
      run();
    }
  }

 protected:
  static void SetUpTestSuite() {
    pairing_ = std::make_unique<mindpipe::testing::Pairing>();
    pairing_->gpu = std::make_unique<GpuOnHost>(pairing_->memory, *pairing_->cpu.backend);
  }
  static void TearDownTestSuite() { pairing_.reset(); }

 private:
  static inline std::unique_ptr<mindpipe::testing::Pairing> pairing_;
};

#include "kernels/cuda_cases.h"
