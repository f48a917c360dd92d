#include "cuda/device/finish.h"

#include "cuda/device/activation.h"
#include "cuda/device/block.h"
#include "cuda/launch.h"

namespace mindpipe::cuda {
namespace {

using flash::Bf16;

MINDPIPE_DEVICE double read(const double* from, std::int64_t i) { return from[i]; }
MINDPIPE_DEVICE float read(const float* from, std::int64_t i) { return from[i]; }
MINDPIPE_DEVICE float read(const Bf16* from, std::int64_t i) { return flash::widen(from[i]); }
MINDPIPE_DEVICE void write(double* to, std::int64_t i, double x) { to[i] = x; }
MINDPIPE_DEVICE void write(float* to, std::int64_t i, float x) { to[i] = x; }
MINDPIPE_DEVICE void write(Bf16* to, std::int64_t i, float x) { flash::put(to[i], x); }

template <class A, class B, class T>
__global__ void forward_elements(const A* sums, const B* bias, Activation activation, T* before, T* y,
                                 std::int64_t count, std::int64_t cols) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  A x = sums[i];
  if (bias != nullptr) x += read(bias, i % cols);
  if (before != nullptr) write(before, i, x);
  write(y, i, activated(activation, x));
}

template <class A, class B, class T>
__global__ void backward_elements(const A* sums, Activation activation, const B* before, T* dx,
                                  std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) write(dx, i, sums[i] * derivative_at(activation, static_cast<A>(read(before, i))));
}

/// visit(a, b) with the pointers as what they are, among f32 and bf16.
template <class Visit>
void with_pointers(const void* a, int a_type, void* b, int b_type, const Visit& visit) {
  const auto with_second = [&](const auto* first) {
    if (b_type == 2) visit(first, static_cast<Bf16*>(b));
    else visit(first, static_cast<float*>(b));
  };
  if (a_type == 2) with_second(static_cast<const Bf16*>(a));
  else with_second(static_cast<const float*>(a));
}

Grid grid_of(const Finish& f) { return {blocks_for(f.count, 256), 256}; }

}  // namespace

void finish_forward(const Finish& f, cudaStream_t stream) {
  const auto run = [&]<class A, class B, class T>(const A* sums, const B* bias, T* y) {
    launch(stream, grid_of(f), forward_elements<A, B, T>, sums, bias, f.activation, f.before, y, f.count,
           f.cols);
  };
  if (f.result_type == 0)
    return run(static_cast<const double*>(f.sums), static_cast<const double*>(f.bias),
               static_cast<double*>(f.result));
  with_pointers(f.bias, f.bias_type, f.result, f.result_type,
                [&](const auto* bias, auto* y) { run(static_cast<const float*>(f.sums), bias, y); });
}

void finish_backward(const Finish& f, cudaStream_t stream) {
  const auto run = [&]<class A, class B, class T>(const A* sums, const B* before, T* dx) {
    launch(stream, grid_of(f), backward_elements<A, B, T>, sums, f.activation, before, dx, f.count);
  };
  if (f.result_type == 0)
    return run(static_cast<const double*>(f.sums), static_cast<const double*>(f.before),
               static_cast<double*>(f.result));
  with_pointers(f.before, f.before_type, f.result, f.result_type,
                [&](const auto* before, auto* dx) { run(static_cast<const float*>(f.sums), before, dx); });
}

}  // namespace mindpipe::cuda
