#include <cstring>

#include "cuda/device/elementwise_kernels.h"
#include "cuda/error.h"
#include "cuda/gpu_operations.h"
#include "operations/elementwise.h"

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

void GpuOperations::run(const AddOperands& o) {
  cuda::add(dtype_index(o.a.dtype), o.a.data, o.b.data, o.sum.data, o.a.count(), stream());
}

void GpuOperations::run(const MaximumOperands& o) {
  cuda::maximum(dtype_index(o.a.dtype), o.a.data, o.b.data, o.largest.data, o.a.count(), stream());
}

void GpuOperations::run(const AccumulateOperands& o) {
  cuda::accumulate(dtype_index(o.part.dtype), o.part.data, o.total.data, o.part.count(), stream());
}

void GpuOperations::run(const ConvertOperands& o) {
  cuda::convert(dtype_index(o.x.dtype), dtype_index(o.y.dtype), o.x.data, o.y.data, o.x.count(), stream());
}

void GpuOperations::run(const FillOperands& o) {
  cuda::fill(static_cast<int>(bytes_of(o.x.dtype)), element_bits(o.x.dtype, o.value), o.x.data, o.x.count(),
             stream());
}

void GpuOperations::run(const SwigluOperands& o) {
  cuda::swiglu(dtype_index(o.y.dtype), o.gate_up.data, o.y.data, o.y.rows(), o.y.cols(), stream());
}

void GpuOperations::run(const SwigluBackwardOperands& o) {
  cuda::swiglu_backward(dtype_index(o.dy.dtype), o.dy.data, o.gate_up.data, o.dgate_up.data, o.dy.rows(),
                        o.dy.cols(), stream());
}

void GpuOperations::run(const ResidualOperands& o) {
  const MaskRows mask = o.checked();
  cuda::residual(dtype_index(o.x.dtype), o.x.data, o.branch.data, o.bias.data, mask, o.y.data, o.x.rows(),
                 stream());
}

void GpuOperations::run(const DropoutOperands& o) {
  const MaskRows mask = o.checked();
  if (mask.threshold != 0)
    cuda::dropout(dtype_index(o.x.dtype), o.x.data, mask, o.y.data, o.x.rows(), stream());
  else if (o.x.data != o.y.data)
    MP_CUDA(cudaMemcpyAsync(o.y.data, o.x.data, o.x.bytes(), cudaMemcpyDeviceToDevice, stream()));
}

}  // namespace mindpipe
