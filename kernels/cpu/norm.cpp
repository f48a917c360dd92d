#include "cpu/simd/norm_kernels.h"

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/row_work.h"
#include "operations/rows.h"

namespace mindpipe {
namespace {

constexpr std::int64_t rows_in_cache =
    4;  ///< that a sum and its norm take in turn: a few, so that they stay in the nearest cache
constexpr std::int64_t strip = 64;  ///< columns of a sum over rows that stay with one thread

/// Divides the columns of a sum over rows among threads: each adds its own columns from the first row to the
/// last.
template <class Work>
void in_columns(int threads, const RowParts& shape, const Work& work) {
  const std::int64_t strips = (shape.cols + strip - 1) / strip,
                     rows = std::max<std::int64_t>(shape.samples * shape.rows, 1);
  in_ranges(threads, strips, row_grain(rows * strip),
            [&](auto first, auto last) { work(first * strip, std::min(last * strip, shape.cols)); });
}

}  // namespace

NormRows norm_rows(Isa isa, const NormOperands& o) {
  o.check();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa, norm_kernels).forward[dtype_index(o.x.dtype)];
  return {kernel,    o.kind == NormKind::rms, o.x.data, o.gain.data, o.offset.data,
          o.epsilon, o.statistics.data,       o.y.data, o.x.cols()};
}

void CpuBackend::norm(const NormOperands& o) {
  in_ranges(threads_, o.x.rows(), row_grain(o.x.cols()), norm_rows(isa_, o));
  progress();
}

void CpuBackend::residual_norm(const ResidualNormOperands& o) {
  const ResidualRows add = residual_rows(isa_, o.residual());
  const NormRows norm = norm_rows(isa_, o.norm());
  in_ranges(threads_, o.y.rows(), row_grain(o.y.cols()), [&](auto first, auto last) {
    for (; first < last;
         first += rows_in_cache) {  // the sum is normed while it is still in the nearest cache
      const auto end = std::min(first + rows_in_cache, last);
      add(first, end);
      norm(first, end);
    }
  });
  progress();
}

void CpuBackend::norm_backward_input(const NormBackwardInputOperands& o) {
  o.check();
  const std::int64_t cols = o.x.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).backward_input[dtype_index(o.x.dtype)];
  in_ranges(threads_, o.x.rows(), row_grain(cols), [&](auto first, auto last) {
    kernel(o.kind == NormKind::rms, o.dy.data, o.x.data, o.gain.data, o.statistics.data, o.residual.data,
           o.dx.data, cols, first, last);
  });
  progress();
}

void CpuBackend::norm_backward_parameters(const NormBackwardParametersOperands& o) {
  const RowParts shape = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).backward_parameters[dtype_index(o.dy.dtype)];
  in_columns(threads_, shape, [&](auto first, auto last) {
    kernel(o.dy.data, o.x.data, o.statistics.data, o.dgain.data, o.doffset.data, shape, first, last);
  });
  progress();
}

void CpuBackend::bias_backward(const BiasBackwardOperands& o) {
  const RowParts shape = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).column_sums[dtype_index(o.dy.dtype)];
  in_columns(threads_, shape,
             [&](auto first, auto last) { kernel(o.dy.data, o.db.data, shape, first, last); });
  progress();
}

void CpuBackend::rotary(const RotaryOperands& o) {
  const Shape& shape = o.heads.data.shape;
  o.check();
  const std::int64_t rows = shape[1], width = shape[3];
  rotary_table_.prepare(o.base, width, o.first_position, rows);
  const double *cosines = rotary_table_.cosines(o.first_position),
               *sines = rotary_table_.sines(o.first_position);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).rotary[dtype_index(o.heads.data.dtype)];
  in_ranges(threads_, shape[0] * rows, row_grain(o.heads.count * width), [&](auto first, auto last) {
    kernel(o.heads.data.data, cosines, sines, rows, shape[2], o.heads.first, o.heads.count, width, o.inverse,
           first, last);
  });
  progress();
}

}  // namespace mindpipe
