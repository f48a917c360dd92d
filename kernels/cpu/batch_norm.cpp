#include "operations/batch_norm.h"

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/batch_norm_kernels.h"

namespace mindpipe {
namespace {

template <class Operands>
ColumnNorm norm_of(const Operands& o) {
  return {o.statistics.data, o.gain.data, o.offset.data, o.x.rows(), o.x.cols(), o.relu};
}

}  // namespace

void CpuBackend::run(const BatchMomentsOperands& o) {
  const std::int64_t rows = o.x.rows(), cols = o.x.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, batch_norm_kernels).moments[dtype_index(o.x.dtype)];
  in_ranges(threads_, pixel_chunks(rows), row_grain(pixel_chunk * cols),
            [&](auto first, auto last) { kernel(o.x.data, o.parts.data, rows, cols, first, last); });
}

void CpuBackend::run(const BatchStatisticsOperands& o) {
  constexpr std::int64_t strip = 16;  // columns that stay with one thread
  const std::int64_t cols = o.statistics.count() / 3;
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, batch_norm_kernels).statistics[dtype_index(o.statistics.dtype)];
  in_ranges(threads_, (cols + strip - 1) / strip, row_grain(strip * pixel_chunks(o.rows)),
            [&](auto first, auto last) {
              kernel(o.parts.data, o.rows, o.epsilon, o.statistics.data, cols, first * strip,
                     std::min(last * strip, cols));
            });
}

void CpuBackend::run(const BatchNormOperands& o) {
  const ColumnNorm norm = norm_of(o);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, batch_norm_kernels).forward[dtype_index(o.x.dtype)];
  in_ranges(threads_, norm.rows, row_grain(norm.cols),
            [&](auto first, auto last) { kernel(norm, o.x.data, o.y.data, first, last); });
}

void CpuBackend::run(const BatchNormBackwardSumsOperands& o) {
  const ColumnNorm norm = norm_of(o);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, batch_norm_kernels).backward_sums[dtype_index(o.x.dtype)];
  in_ranges(threads_, pixel_chunks(norm.rows), row_grain(pixel_chunk * norm.cols),
            [&](auto first, auto last) { kernel(norm, o.dy.data, o.x.data, o.parts.data, first, last); });
}

void CpuBackend::run(const BatchNormBackwardInputOperands& o) {
  const ColumnNorm norm = norm_of(o);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, batch_norm_kernels).backward_input[dtype_index(o.x.dtype)];
  in_ranges(threads_, norm.rows, row_grain(norm.cols), [&](auto first, auto last) {
    kernel(norm, o.dy.data, o.x.data, o.sums.data, o.residual.data, o.dx.data, first, last);
  });
}

}  // namespace mindpipe
