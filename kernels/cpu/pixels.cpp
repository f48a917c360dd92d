#include "operations/pixels.h"

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/pixel_kernels.h"

namespace mindpipe {
namespace {

std::int64_t windows_of(const PixelCall& call) { return call.samples * call.window.windows(); }
std::int64_t pixels_of(const PixelCall& call) { return call.samples * call.window.pixels(); }
/// Numbers that are read or written for each pixel or window.
std::int64_t numbers_of(const PixelCall& call) { return call.channels * call.window.taps(); }

}  // namespace

void CpuBackend::run(const PixelNeighboursOperands& o) {
  const PixelCall call = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, pixel_kernels).neighbours[dtype_index(o.x.dtype)];
  in_ranges(threads_, windows_of(call), row_grain(numbers_of(call)),
            [&](auto first, auto last) { kernel(call, o.x.data, o.y.data, first, last); });
}

void CpuBackend::run(const PixelNeighboursBackwardOperands& o) {
  const PixelCall call = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, pixel_kernels).neighbours_backward[dtype_index(o.dx.dtype)];
  in_ranges(threads_, pixels_of(call), row_grain(numbers_of(call)),
            [&](auto first, auto last) { kernel(call, o.dy.data, o.dx.data, first, last); });
}

void CpuBackend::run(const PixelDepthwiseOperands& o) {
  const PixelCall call = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, pixel_kernels).depthwise[dtype_index(o.x.dtype)];
  in_ranges(threads_, windows_of(call), row_grain(numbers_of(call)),
            [&](auto first, auto last) { kernel(call, o.x.data, o.w.data, o.y.data, first, last); });
}

void CpuBackend::run(const PixelDepthwiseBackwardInputOperands& o) {
  const PixelCall call = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, pixel_kernels).depthwise_backward_input[dtype_index(o.dx.dtype)];
  in_ranges(threads_, pixels_of(call), row_grain(numbers_of(call)),
            [&](auto first, auto last) { kernel(call, o.dy.data, o.w.data, o.dx.data, first, last); });
}

void CpuBackend::run(const PixelDepthwiseBackwardWeightOperands& o) {
  const PixelCall call = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, pixel_kernels).depthwise_backward_weight[dtype_index(o.x.dtype)];
  in_ranges(threads_, pixel_chunks(windows_of(call)), row_grain(numbers_of(call) * pixel_chunk),
            [&](auto first, auto last) { kernel(call, o.dy.data, o.x.data, o.parts.data, first, last); });
}

void CpuBackend::run(const PoolOperands& o) {
  const PixelCall call = o.checked();
  const PixelKernels& kernels = MINDPIPE_PICK_KERNELS(isa_, pixel_kernels);
  const int type = dtype_index(o.x.dtype);
  in_ranges(threads_, windows_of(call), row_grain(numbers_of(call)), [&](auto first, auto last) {
    if (o.kind == PoolKind::average) kernels.mean[type](call, o.x.data, o.y.data, first, last);
    else kernels.largest[type](call, o.x.data, o.y.data, o.chosen.as<std::uint8_t>(), first, last);
  });
}

void CpuBackend::run(const PoolBackwardOperands& o) {
  const PixelCall call = o.checked();
  const PixelKernels& kernels = MINDPIPE_PICK_KERNELS(isa_, pixel_kernels);
  const int type = dtype_index(o.dx.dtype);
  in_ranges(threads_, pixels_of(call), row_grain(numbers_of(call)), [&](auto first, auto last) {
    if (o.kind == PoolKind::average) kernels.mean_backward[type](call, o.dy.data, o.dx.data, first, last);
    else kernels.largest_backward[type](call, o.dy.data, o.chosen.as<std::uint8_t>(), o.dx.data, first, last);
  });
}

void CpuBackend::run(const GlobalPoolOperands& o) {
  const std::int64_t pixels = o.x.shape[1], channels = o.x.shape[2];
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, pixel_kernels).global_mean[dtype_index(o.x.dtype)];
  in_ranges(threads_, o.x.shape[0], row_grain(pixels * channels),
            [&](auto first, auto last) { kernel(o.x.data, o.y.data, pixels, channels, first, last); });
}

void CpuBackend::run(const GlobalPoolBackwardOperands& o) {
  const std::int64_t pixels = o.dx.shape[1], channels = o.dx.shape[2];
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, pixel_kernels).global_mean_backward[dtype_index(o.dx.dtype)];
  in_ranges(threads_, o.dx.shape[0], row_grain(pixels * channels),
            [&](auto first, auto last) { kernel(o.dy.data, o.dx.data, pixels, channels, first, last); });
}

void CpuBackend::run(const TransposeOperands& o) {
  const std::int64_t rows = o.x.shape[1], cols = o.x.shape[2];
  const auto turn = [&]<class T>(const T* x, const auto& put) {
    in_ranges(threads_, o.x.shape[0], row_grain(rows * cols), [&](auto first, auto last) {
      for (std::int64_t n = first; n < last; ++n)
        for (std::int64_t j = 0; j < cols; ++j)
          for (std::int64_t i = 0; i < rows; ++i)
            put(o.y.as<T>()[(n * cols + j) * rows + i], x[(n * rows + i) * cols + j]);
    });
  };
  const auto set = [](auto& y, auto x) { y = x; };
  const auto add = [](auto& y, auto x) { y += x; };
  if (o.x.dtype == DType::bf16) turn(o.x.as<std::uint16_t>(), set);
  else if (o.x.dtype == DType::f64) o.add ? turn(o.x.as<double>(), add) : turn(o.x.as<double>(), set);
  else o.add ? turn(o.x.as<float>(), add) : turn(o.x.as<float>(), set);
}

}  // namespace mindpipe
