#include <cstring>

#include "cuda/device/elementwise_kernels.h"
#include "cuda/error.h"
#include "cuda/gpu_operations.h"
#include "row_operands.h"

namespace mindpipe {
namespace {

template <class T>
std::uint64_t bits_of(T x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

/// The bits of one element with this value; bf16 rounds to the nearest, ties to even.
std::uint64_t element_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return bits_of(value);
    case DType::f32:
      return bits_of(static_cast<float>(value));
    case DType::i32:
      return bits_of(static_cast<std::int32_t>(value));
    case DType::u8:
      return bits_of(static_cast<std::uint8_t>(value));
    case DType::bf16:
      break;
  }
  if (value != value) return 0x7fff;
  const std::uint64_t wide = bits_of(static_cast<float>(value));
  return (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
}

}  // namespace

void GpuOperations::add(const Tensor& a, const Tensor& b, const Tensor& sum) {
  require(b, a.count(), a.dtype, "add", "b");
  require(sum, a.count(), a.dtype, "add", "sum");
  cuda::add(slot(a.dtype), a.data, b.data, sum.data, a.count(), stream());
  done("add");
}

void GpuOperations::maximum(const Tensor& a, const Tensor& b, const Tensor& largest) {
  require(b, a.count(), a.dtype, "maximum", "b");
  require(largest, a.count(), a.dtype, "maximum", "largest");
  require_dtype(a, wide(a.dtype), "maximum", "a");
  cuda::maximum(slot(a.dtype), a.data, b.data, largest.data, a.count(), stream());
  done("maximum");
}

void GpuOperations::accumulate(const Tensor& part, const Tensor& total) {
  require(total, part.count(), wide(part.dtype), "accumulate", "total");
  cuda::accumulate(slot(part.dtype), part.data, total.data, part.count(), stream());
  done("accumulate");
}

void GpuOperations::convert(const Tensor& x, const Tensor& y) {
  require_count(y, x.count(), "convert", "y");
  cuda::convert(slot(x.dtype), slot(y.dtype), x.data, y.data, x.count(), stream());
  done("convert");
}

void GpuOperations::fill(const Tensor& x, double value) {
  cuda::fill(static_cast<int>(bytes_of(x.dtype)), element_bits(x.dtype, value), x.data, x.count(), stream());
  done("fill");
}

void GpuOperations::swiglu(const Tensor& gate_up, const Tensor& y) {
  require(gate_up, 2 * y.count(), y.dtype, "swiglu", "gate_up");
  cuda::swiglu(slot(y.dtype), gate_up.data, y.data, y.rows(), y.cols(), stream());
  done("swiglu");
}

void GpuOperations::swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& dgate_up) {
  require(gate_up, 2 * dy.count(), dy.dtype, "swiglu_backward", "gate_up");
  require(dgate_up, 2 * dy.count(), dy.dtype, "swiglu_backward", "dgate_up");
  cuda::swiglu_backward(slot(dy.dtype), dy.data, gate_up.data, dgate_up.data, dy.rows(), dy.cols(), stream());
  done("swiglu_backward");
}

void GpuOperations::residual(const Tensor& x, const Tensor& branch, const Tensor& bias,
                             const Dropout& dropout, const Window& window, const Tensor& y) {
  const MaskRows mask = residual_mask(x, branch, bias, dropout, window, y, "residual");
  cuda::residual(slot(x.dtype), x.data, branch.data, bias.data, mask, y.data, x.rows(), stream());
  done("residual");
}

void GpuOperations::dropout(const Tensor& x, const Dropout& dropout, const Window& window, const Tensor& y) {
  const std::int64_t cols = columns_under(window, x, "dropout");
  require(y, x.count(), x.dtype, "dropout", "y");
  const MaskRows mask = mask_of(dropout, window, cols, "dropout");
  if (mask.threshold != 0) cuda::dropout(slot(x.dtype), x.data, mask, y.data, x.rows(), stream());
  else if (x.data != y.data)
    MP_CUDA(cudaMemcpyAsync(y.data, x.data, x.bytes(), cudaMemcpyDeviceToDevice, stream()));
  done("dropout");
}

}  // namespace mindpipe
