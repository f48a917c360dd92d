#pragma once
#include <algorithm>

#include "backend.h"
#include "calls.h"
#include "dropout_mask.h"
#include "operands.h"

/// Checks the operands of Backend's operations on rows (sums with a branch, norms, sums over rows, positions,
/// rotations), whichever device they are on.
namespace mindpipe {

/// The dropout mask of a checked x + dropout(branch + bias).
inline MaskRows residual_mask(const Tensor& x, const Tensor& branch, const Tensor& bias,
                              const Dropout& dropout, const Window& window, const Tensor& y,
                              const char* operation) {
  const std::int64_t cols = columns_under(window, x, operation);
  require(branch, x.count(), x.dtype, operation, "branch");
  require(y, x.count(), x.dtype, operation, "y");
  if (bias) require(bias, cols, x.dtype, operation, "bias");
  return mask_of(dropout, window, cols, operation);
}

inline void require_norm(const Tensor& x, const Tensor& gain, const Tensor& offset, const Tensor& statistics,
                         const Tensor& y) {
  const std::int64_t rows = x.rows(), cols = x.cols();
  require(y, x.count(), x.dtype, "norm", "y");
  require(gain, cols, x.dtype, "norm", "gain");
  if (offset) require(offset, cols, x.dtype, "norm", "offset");
  require(statistics, 2 * rows, wide(x.dtype), "norm", "statistics");
}

inline void require_norm_backward_input(const Tensor& dy, const Tensor& x, const Tensor& gain,
                                        const Tensor& statistics, const Tensor& residual, const Tensor& dx) {
  const std::int64_t rows = x.rows(), cols = x.cols();
  require(dy, x.count(), x.dtype, "norm_backward_input", "dy");
  require(dx, x.count(), x.dtype, "norm_backward_input", "dx");
  if (residual) require(residual, x.count(), x.dtype, "norm_backward_input", "residual");
  require(gain, cols, x.dtype, "norm_backward_input", "gain");
  require(statistics, 2 * rows, wide(x.dtype), "norm_backward_input", "statistics");
}

/// The shape of a sum over rows of dy into [parts, cols].
inline RowParts row_parts(const Tensor& dy, const Tensor& sums, const char* operation, const char* name) {
  const SampleRows shape = sample_rows(dy, operation);
  const RowParts parts{shape.samples, shape.rows, shape.cols,
                       sums.count() / std::max<std::int64_t>(shape.cols, 1)};
  require(sums, parts.parts * parts.cols, wide(dy.dtype), operation, name);
  return parts;
}
inline RowParts norm_parameter_parts(const Tensor& dy, const Tensor& x, const Tensor& statistics,
                                     const Tensor& dgain, const Tensor& doffset) {
  const RowParts parts = row_parts(dy, dgain, "norm_backward_parameters", "dgain");
  require(x, dy.count(), dy.dtype, "norm_backward_parameters", "x");
  require(statistics, 2 * dy.rows(), wide(dy.dtype), "norm_backward_parameters", "statistics");
  if (doffset) require(doffset, dgain.count(), wide(dy.dtype), "norm_backward_parameters", "doffset");
  return parts;
}

/// Which row of a table of positions the first row of a window reads.
inline std::int64_t first_position_of(const Tensor& x, const Tensor& positions, const Window& window,
                                      std::int64_t first_position, const char* operation) {
  MP_CHECK(x.rows() == window.samples * window.rows, "{}: {} is not {} samples of {} rows", operation,
           to_string(x.shape), window.samples, window.rows);
  const std::int64_t first = first_position + window.first, cols = x.cols();
  MP_CHECK(positions.cols() == cols && first >= 0 && first + window.rows <= positions.rows(),
           "{}: positions {}..{} of width {} in a table {}", operation, first, first + window.rows, cols,
           to_string(positions.shape));
  return first;
}

inline void require_rotary(const Heads& heads) {
  const Shape& shape = heads.data.shape;
  MP_CHECK(shape.rank == 4, "rotary: {} is not [samples, rows, heads, width]", to_string(shape));
  MP_CHECK(shape[3] % 2 == 0, "rotary: heads of width {} (pairs need an even one)", shape[3]);
  MP_CHECK(heads.first >= 0 && heads.count >= 0 && heads.first + heads.count <= shape[2],
           "rotary: heads {}..{} of {}", heads.first, heads.first + heads.count, shape[2]);
}

}  // namespace mindpipe
