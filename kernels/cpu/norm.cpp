#include "cpu/simd/norm_kernels.h"

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/row_work.h"
#include "row_operands.h"

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

NormRows norm_rows(Isa isa, NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset,
                   double epsilon, const Tensor& statistics, const Tensor& y) {
  require_norm(x, gain, offset, statistics, y);
  return {MINDPIPE_PICK_KERNELS(isa, norm_kernels).forward[slot(x.dtype)],
          kind == NormKind::rms,
          x.data,
          gain.data,
          offset.data,
          epsilon,
          statistics.data,
          y.data,
          x.cols()};
}

void CpuBackend::norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset,
                      double epsilon, const Tensor& statistics, const Tensor& y) {
  in_ranges(threads_, x.rows(), row_grain(x.cols()),
            norm_rows(isa_, kind, x, gain, offset, epsilon, statistics, y));
  progress();
}

void CpuBackend::residual_norm(const Tensor& x, const Tensor& branch, const Tensor& bias,
                               const Dropout& dropout, const Window& window, const Tensor& y, NormKind kind,
                               const Tensor& gain, const Tensor& offset, double epsilon,
                               const Tensor& statistics, const Tensor& normed) {
  const ResidualRows add = residual_rows(isa_, x, branch, bias, dropout, window, y);
  const NormRows norm = norm_rows(isa_, kind, y, gain, offset, epsilon, statistics, normed);
  in_ranges(threads_, y.rows(), row_grain(y.cols()), [&](auto first, auto last) {
    for (; first < last;
         first += rows_in_cache) {  // the sum is normed while it is still in the nearest cache
      const auto end = std::min(first + rows_in_cache, last);
      add(first, end);
      norm(first, end);
    }
  });
  progress();
}

void CpuBackend::norm_backward_input(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain,
                                     const Tensor& statistics, const Tensor& residual, const Tensor& dx) {
  require_norm_backward_input(dy, x, gain, statistics, residual, dx);
  const std::int64_t cols = x.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).backward_input[slot(x.dtype)];
  in_ranges(threads_, x.rows(), row_grain(cols), [&](auto first, auto last) {
    kernel(kind == NormKind::rms, dy.data, x.data, gain.data, statistics.data, residual.data, dx.data, cols,
           first, last);
  });
  progress();
}

void CpuBackend::norm_backward_parameters(NormKind, const Tensor& dy, const Tensor& x,
                                          const Tensor& statistics, const Tensor& dgain,
                                          const Tensor& doffset) {
  const RowParts shape = norm_parameter_parts(dy, x, statistics, dgain, doffset);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).backward_parameters[slot(dy.dtype)];
  in_columns(threads_, shape, [&](auto first, auto last) {
    kernel(dy.data, x.data, statistics.data, dgain.data, doffset.data, shape, first, last);
  });
  progress();
}

void CpuBackend::bias_backward(const Tensor& dy, const Tensor& db) {
  const RowParts shape = row_parts(dy, db, "bias_backward", "db");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).column_sums[slot(dy.dtype)];
  in_columns(threads_, shape, [&](auto first, auto last) { kernel(dy.data, db.data, shape, first, last); });
  progress();
}

void CpuBackend::rotary(const Heads& heads, double base, std::int64_t first_position, bool inverse) {
  const Shape& shape = heads.data.shape;
  require_rotary(heads);
  const std::int64_t rows = shape[1], width = shape[3];
  rotary_table_.prepare(base, width, first_position, rows);
  const double *cosines = rotary_table_.cosines(first_position), *sines = rotary_table_.sines(first_position);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).rotary[slot(heads.data.dtype)];
  in_ranges(threads_, shape[0] * rows, row_grain(heads.count * width), [&](auto first, auto last) {
    kernel(heads.data.data, cosines, sines, rows, shape[2], heads.first, heads.count, width, inverse, first,
           last);
  });
  progress();
}

}  // namespace mindpipe
