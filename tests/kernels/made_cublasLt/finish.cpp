#include "cuda/device/finish.h"

#include <cstring>

#include "cuda/device/activation.h"

/// What follows a product's sums, element by element: the kernels of device/finish.cu without a GPU, at once.
namespace mindpipe::cuda {
namespace {

constexpr int is_f64 = 0, is_bf16 = 2;

double read(const void* from, int type, std::int64_t i) {
  if (type == is_f64) return static_cast<const double*>(from)[i];
  if (type != is_bf16) return static_cast<const float*>(from)[i];
  const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(from)[i]} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
void write(void* to, int type, std::int64_t i, double x) {
  if (type == is_f64) static_cast<double*>(to)[i] = x;
  else if (type != is_bf16) static_cast<float*>(to)[i] = static_cast<float>(x);
  else {
    const auto single = static_cast<float>(x);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &single, sizeof bits);
    static_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

template <class Number>
void forward(const Finish& f) {
  for (std::int64_t i = 0; i < f.count; ++i) {
    Number x = static_cast<const Number*>(f.sums)[i];
    if (f.bias != nullptr) x += static_cast<Number>(read(f.bias, f.bias_type, i % f.cols));
    if (f.before != nullptr) write(f.before, f.before_type, i, x);
    write(f.result, f.result_type, i, activated(f.activation, x));
  }
}
template <class Number>
void backward(const Finish& f) {
  for (std::int64_t i = 0; i < f.count; ++i) {
    const auto before = static_cast<Number>(f.before == nullptr ? 0 : read(f.before, f.before_type, i));
    write(f.result, f.result_type, i,
          static_cast<const Number*>(f.sums)[i] * derivative_at(f.activation, before));
  }
}

}  // namespace

void finish_forward(const Finish& f, cudaStream_t) {
  f.result_type == is_f64 ? forward<double>(f) : forward<float>(f);
}
void finish_backward(const Finish& f, cudaStream_t) {
  f.result_type == is_f64 ? backward<double>(f) : backward<float>(f);
}

}  // namespace mindpipe::cuda
