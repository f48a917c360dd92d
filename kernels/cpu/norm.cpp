#include "cpu/simd/norm_kernels.h"

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"
#include "operations/rows.h"

namespace mindpipe {
namespace {

constexpr std::int64_t rows_in_cache = 4;  ///< rows that a sum and its norm take in turn
constexpr std::int64_t strip = 64;         ///< columns of a sum over rows that stay with one thread

/// Divides the columns of a sum over rows among threads: each adds its own from the first row to the last.
template <class Work>
void in_columns(int threads, const RowParts& shape, const Work& work) {
  const std::int64_t strips = (shape.cols + strip - 1) / strip,
                     rows = std::max<std::int64_t>(shape.samples * shape.rows, 1);
  in_ranges(threads, strips, row_grain(rows * strip),
            [&](auto first, auto last) { work(first * strip, std::min(last * strip, shape.cols)); });
}

/// A sum with a branch, to be run on any range of its rows: alone, or row by row with a norm.
auto residual_rows(Isa isa, const ResidualOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa, elementwise_kernels).residual[dtype_index(o.x.dtype)];
  return [=, mask = o.checked()](std::int64_t first, std::int64_t last) {
    kernel(o.x.data, o.branch.data, o.bias.data, mask, o.y.data, first, last);
  };
}
auto norm_rows(Isa isa, const NormOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa, norm_kernels).forward[dtype_index(o.x.dtype)];
  return [=](std::int64_t first, std::int64_t last) {
    kernel(o.kind == NormKind::rms, o.x.data, o.gain.data, o.offset.data, o.epsilon, o.statistics.data,
           o.y.data, o.x.cols(), first, last);
  };
}

}  // namespace

void CpuBackend::run(const ResidualOperands& o) {
  in_ranges(threads_, o.x.rows(), row_grain(o.x.cols()), residual_rows(isa_, o));
}

void CpuBackend::run(const NormOperands& o) {
  in_ranges(threads_, o.x.rows(), row_grain(o.x.cols()), norm_rows(isa_, o));
}

void CpuBackend::run(const ResidualNormOperands& o) {
  const auto add = residual_rows(isa_, o.residual());
  const auto norm = norm_rows(isa_, o.norm());
  in_ranges(threads_, o.y.rows(), row_grain(o.y.cols()), [&](auto first, auto last) {
    for (; first < last; first += rows_in_cache) {
      const auto end = std::min(first + rows_in_cache, last);
      add(first, end);
      norm(first, end);
    }
  });
}

void CpuBackend::run(const NormBackwardInputOperands& o) {
  const std::int64_t cols = o.x.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).backward_input[dtype_index(o.x.dtype)];
  in_ranges(threads_, o.x.rows(), row_grain(cols), [&](auto first, auto last) {
    kernel(o.kind == NormKind::rms, o.dy.data, o.x.data, o.gain.data, o.statistics.data, o.residual.data,
           o.dx.data, cols, first, last);
  });
}

void CpuBackend::run(const NormBackwardParametersOperands& o) {
  const RowParts shape = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).backward_parameters[dtype_index(o.dy.dtype)];
  in_columns(threads_, shape, [&](auto first, auto last) {
    kernel(o.dy.data, o.x.data, o.statistics.data, o.dgain.data, o.doffset.data, shape, first, last);
  });
}

void CpuBackend::run(const NormBackwardOperands& o) { run_in_turn(o); }

void CpuBackend::run(const BiasBackwardOperands& o) {
  const RowParts shape = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).column_sums[dtype_index(o.dy.dtype)];
  in_columns(threads_, shape,
             [&](auto first, auto last) { kernel(o.dy.data, o.db.data, shape, first, last); });
}

void CpuBackend::run(const RotaryOperands& o) {
  const Shape& shape = o.heads.data.shape;
  const std::int64_t rows = shape[1], width = shape[3];
  rotary_table_.prepare(o.frequencies, width, o.first_position, rows);
  const double *cosines = rotary_table_.cosines(o.first_position),
               *sines = rotary_table_.sines(o.first_position);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, norm_kernels).rotary[dtype_index(o.heads.data.dtype)];
  in_ranges(threads_, shape[0] * rows, row_grain(o.heads.count * width), [&](auto first, auto last) {
    kernel(o.heads.data.data, cosines, sines, rows, shape[2], o.heads.first, o.heads.count, width, o.inverse,
           first, last);
  });
}

}  // namespace mindpipe
