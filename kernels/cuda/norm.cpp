#include <algorithm>
#include <cmath>

#include "cuda/device/norm_kernels.h"
#include "cuda/gpu_operations.h"
#include "dropout_mask.h"
#include "operands.h"

namespace mindpipe {
namespace {

cuda::NormCall checked_norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset, double epsilon,
                            const Tensor& statistics, const Tensor& y) {
  const std::int64_t rows = x.rows(), cols = x.cols();
  require(y, x.count(), x.dtype, "norm", "y");
  require(gain, cols, x.dtype, "norm", "gain");
  if (offset) require(offset, cols, x.dtype, "norm", "offset");
  require(statistics, 2 * rows, wide(x.dtype), "norm", "statistics");
  return {kind == NormKind::rms, gain.data, offset.data, epsilon, statistics.data, y.data, rows, cols};
}

/// The shape of a sum over rows into [parts, cols].
RowParts parts_of(const Tensor& dy, const Tensor& sums, const char* operation) {
  const SampleRows shape = sample_rows(dy, operation);
  return {shape.samples, shape.rows, shape.cols, sums.count() / std::max<std::int64_t>(shape.cols, 1)};
}

}  // namespace

void GpuOperations::norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset, double epsilon, const Tensor& statistics,
                         const Tensor& y) {
  cuda::norm(slot(x.dtype), x.data, checked_norm(kind, x, gain, offset, epsilon, statistics, y), stream());
  done("norm");
}

void GpuOperations::residual_norm(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout, const Window& window,
                                  const Tensor& y, NormKind kind, const Tensor& gain, const Tensor& offset, double epsilon,
                                  const Tensor& statistics, const Tensor& normed) {
  const std::int64_t cols = columns_under(window, x, "residual_norm");
  require(branch, x.count(), x.dtype, "residual_norm", "branch");
  require(y, x.count(), x.dtype, "residual_norm", "y");
  if (bias) require(bias, cols, x.dtype, "residual_norm", "bias");
  cuda::residual_norm(slot(x.dtype), x.data, branch.data, bias.data, mask_of(dropout, window, cols, "residual_norm"), y.data,
                      checked_norm(kind, y, gain, offset, epsilon, statistics, normed), stream());
  done("residual_norm");
}

void GpuOperations::norm_backward_input(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain, const Tensor& statistics,
                                        const Tensor& residual, const Tensor& dx) {
  const std::int64_t rows = x.rows(), cols = x.cols();
  require(dy, x.count(), x.dtype, "norm_backward_input", "dy");
  require(dx, x.count(), x.dtype, "norm_backward_input", "dx");
  if (residual) require(residual, x.count(), x.dtype, "norm_backward_input", "residual");
  require(gain, cols, x.dtype, "norm_backward_input", "gain");
  require(statistics, 2 * rows, wide(x.dtype), "norm_backward_input", "statistics");
  cuda::norm_backward_input(slot(x.dtype), kind == NormKind::rms, dy.data, x.data, gain.data, statistics.data, residual.data, dx.data, rows,
                            cols, stream());
  done("norm_backward_input");
}

void GpuOperations::norm_backward_parameters(NormKind, const Tensor& dy, const Tensor& x, const Tensor& statistics, const Tensor& dgain,
                                             const Tensor& doffset) {
  const RowParts shape = parts_of(dy, dgain, "norm_backward_parameters");
  const std::int64_t sums = shape.parts * shape.cols;
  require(x, dy.count(), dy.dtype, "norm_backward_parameters", "x");
  require(statistics, 2 * dy.rows(), wide(dy.dtype), "norm_backward_parameters", "statistics");
  require(dgain, sums, wide(dy.dtype), "norm_backward_parameters", "dgain");
  if (doffset) require(doffset, sums, wide(dy.dtype), "norm_backward_parameters", "doffset");
  void* room = workspace(cuda::column_sums_workspace(shape), "norm_backward_parameters");
  cuda::norm_backward_parameters(slot(dy.dtype), dy.data, x.data, statistics.data, dgain.data, doffset.data, shape, room, workspace_.size(),
                                 stream());
  done("norm_backward_parameters");
}

void GpuOperations::bias_backward(const Tensor& dy, const Tensor& db) {
  const RowParts shape = parts_of(dy, db, "bias_backward");
  require(db, shape.parts * shape.cols, wide(dy.dtype), "bias_backward", "db");
  void* room = workspace(cuda::column_sums_workspace(shape), "bias_backward");
  cuda::column_sums(slot(dy.dtype), dy.data, db.data, shape, room, workspace_.size(), stream());
  done("bias_backward");
}

void GpuOperations::rotary(const Heads& heads, double base, std::int64_t first_position, bool inverse) {
  const Shape& shape = heads.data.shape;
  MP_CHECK(shape.rank == 4, "rotary: {} is not [samples, rows, heads, width]", to_string(shape));
  MP_CHECK(shape[3] % 2 == 0, "rotary: heads of width {} (pairs need an even one)", shape[3]);
  MP_REQUIRE(shape[3] <= cuda::widest_rotary, Exit::bad_configuration, "rotary: heads of width {} (at most {} on CUDA)", shape[3],
             cuda::widest_rotary);
  MP_CHECK(heads.first >= 0 && heads.count >= 0 && heads.first + heads.count <= shape[2], "rotary: heads {}..{} of {}", heads.first,
           heads.first + heads.count, shape[2]);
  cuda::Frequencies frequencies{};
  for (std::int64_t i = 0; i < shape[3] / 2; ++i)
    frequencies.of[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(shape[3]));
  const cuda::RotaryCall call{heads.data.data, shape[0] * shape[1], shape[1], shape[2], heads.first, heads.count,
                              shape[3],        first_position,      inverse};
  cuda::rotary(slot(heads.data.dtype), call, frequencies, stream());
  done("rotary");
}

}  // namespace mindpipe
