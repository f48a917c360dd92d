#include "cuda/device/finish.h"

#include "cuda/device/activation.h"
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
__global__ void forward_elements(const A* sums, const B* bias, Activation activation, T* before, T* y, std::int64_t count, std::int64_t cols) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  A x = sums[i];
  if (bias != nullptr) x += read(bias, i % cols);
  if (before != nullptr) write(before, i, x);
  write(y, i, activated(activation, x));
}

template <class A, class B, class T>
__global__ void backward_elements(const A* sums, Activation activation, const B* before, T* dx, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) write(dx, i, sums[i] * derivative_at(activation, static_cast<A>(read(before, i))));
}

/// visit(pointer) with the tensor's data as what it is, among f32 and bf16; none is a null pointer.
template <class Visit>
void with_pointer(const Tensor& t, const Visit& visit) {
  if (t.dtype == DType::bf16) visit(t.as<Bf16>());
  else visit(t.as<float>());
}

Grid grid_of(std::int64_t count) { return {blocks_for(count, 256), 256}; }

}  // namespace

void finish_forward(const Tensor& sums, const Tensor& bias, Activation activation, const Tensor& before, const Tensor& y, cudaStream_t stream) {
  const std::int64_t count = y.count(), cols = y.cols();
  if (y.dtype == DType::f64)
    return launch(stream, grid_of(count), forward_elements<double, double, double>, sums.as<double>(), bias.as<double>(), activation, before.as<double>(), y.as<double>(), count, cols);
  with_pointer(bias, [&](auto* bias_at) {
    with_pointer(y, [&](auto* to) {
      using B = std::remove_pointer_t<decltype(bias_at)>;
      using T = std::remove_pointer_t<decltype(to)>;
      launch(stream, grid_of(count), forward_elements<float, B, T>, sums.as<float>(), bias_at, activation, before.as<T>(), to, count, cols);
    });
  });
}

void finish_backward(const Tensor& sums, Activation activation, const Tensor& before, const Tensor& dx, cudaStream_t stream) {
  const std::int64_t count = dx.count();
  if (dx.dtype == DType::f64) return launch(stream, grid_of(count), backward_elements<double, double, double>, sums.as<double>(), activation, before.as<double>(), dx.as<double>(), count);
  with_pointer(before, [&](auto* before_at) {
    with_pointer(dx, [&](auto* to) {
      launch(stream, grid_of(count), backward_elements<float, std::remove_pointer_t<decltype(before_at)>, std::remove_pointer_t<decltype(to)>>, sums.as<float>(), activation,
             before_at, to, count);
    });
  });
}

}  // namespace mindpipe::cuda
