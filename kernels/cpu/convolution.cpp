#include "cpu/simd/convolution_kernels.h"

#include <cstring>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "operations/convolution.h"

namespace mindpipe {
namespace {

constexpr std::int64_t columns_of_thread = 64;  ///< columns of a sum over rows that stay with one thread

std::int64_t rows_of(const LengthCall& of) { return of.samples * of.rows; }

/// The neighbours of row n of all rows, one after the other.
void copy_neighbours(const TapCall& call, const std::byte* x, std::size_t row_bytes, std::byte* y,
                     std::int64_t n) {
  const LengthCall& of = call.of;
  const std::int64_t sample = n / of.rows, row = n % of.rows,
                     length = of.lengths == nullptr ? of.rows : of.lengths[sample];
  for (std::int64_t t = 0; t < call.taps; ++t) {
    const std::int64_t from = row - call.before + t;
    std::byte* to = y + static_cast<std::size_t>(n * call.taps + t) * row_bytes;
    if (from < 0 || from >= std::min(length, of.rows)) std::memset(to, 0, row_bytes);
    else std::memcpy(to, x + static_cast<std::size_t>(sample * of.rows + from) * row_bytes, row_bytes);
  }
}

}  // namespace

void CpuBackend::run(const DepthwiseOperands& o) {
  const TapCall call = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, convolution_kernels).depthwise[dtype_index(o.x.dtype)];
  in_ranges(threads_, rows_of(call.of), row_grain(call.of.cols),
            [&](auto first, auto last) { kernel(o.x.data, o.w.data, call, o.y.data, first, last); });
}

void CpuBackend::run(const DepthwiseBackwardInputOperands& o) {
  const TapCall call = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, convolution_kernels).depthwise_backward_input[dtype_index(o.dy.dtype)];
  in_ranges(threads_, rows_of(call.of), row_grain(call.of.cols),
            [&](auto first, auto last) { kernel(o.dy.data, o.w.data, call, o.dx.data, first, last); });
}

void CpuBackend::run(const DepthwiseBackwardWeightOperands& o) {
  const TapCall call = o.checked();
  const std::int64_t cols = call.of.cols, strips = (cols + columns_of_thread - 1) / columns_of_thread,
                     rows = std::max<std::int64_t>(rows_of(call.of), 1);
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, convolution_kernels).depthwise_backward_weight[dtype_index(o.dy.dtype)];
  in_ranges(threads_, strips, row_grain(rows * columns_of_thread), [&](auto first, auto last) {
    kernel(o.dy.data, o.x.data, call, o.dw.data, first * columns_of_thread,
           std::min(last * columns_of_thread, cols));
  });
}

void CpuBackend::run(const RowNeighboursOperands& o) {
  const TapCall call = o.checked();
  const std::size_t row_bytes = static_cast<std::size_t>(call.of.cols) * bytes_of(o.x.dtype);
  in_ranges(threads_, rows_of(call.of), row_grain(call.of.cols * call.taps), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n)
      copy_neighbours(call, o.x.as<std::byte>(), row_bytes, o.y.as<std::byte>(), n);
  });
}

void CpuBackend::run(const RowNeighboursBackwardOperands& o) {
  const TapCall call = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, convolution_kernels).neighbour_sums[dtype_index(o.dx.dtype)];
  in_ranges(threads_, rows_of(call.of), row_grain(call.of.cols * call.taps),
            [&](auto first, auto last) { kernel(o.dy.data, call, o.dx.data, first, last); });
}

void CpuBackend::run(const ShareTapsOperands& o) {
  const SharedTaps call = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, convolution_kernels).share_taps[dtype_index(o.w.dtype)];
  in_ranges(threads_, call.columns, row_grain(call.taps * 16),
            [&](auto first, auto last) { kernel(o.w.data, call, o.y.data, first, last); });
}

void CpuBackend::run(const ShareTapsBackwardOperands& o) {
  const SharedTaps call = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, convolution_kernels).share_taps_backward[dtype_index(o.w.dtype)];
  in_ranges(threads_, call.columns, row_grain(call.taps * 16),
            [&](auto first, auto last) { kernel(o.dy.data, o.w.data, call, o.dw.data, first, last); });
}

}  // namespace mindpipe
