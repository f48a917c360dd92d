#include <algorithm>
#include <cmath>

#include "cuda/device/norm_kernels.h"
#include "cuda/gpu_operations.h"
#include "row_operands.h"

namespace mindpipe {
namespace {

cuda::NormCall checked_norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset,
                            double epsilon, const Tensor& statistics, const Tensor& y) {
  require_norm(x, gain, offset, statistics, y);
  return {kind == NormKind::rms, gain.data, offset.data, epsilon,
          statistics.data,       y.data,    x.rows(),    x.cols()};
}

}  // namespace

void GpuOperations::norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset,
                         double epsilon, const Tensor& statistics, const Tensor& y) {
  cuda::norm(slot(x.dtype), x.data, checked_norm(kind, x, gain, offset, epsilon, statistics, y), stream());
  done("norm");
}

void GpuOperations::residual_norm(const Tensor& x, const Tensor& branch, const Tensor& bias,
                                  const Dropout& dropout, const Window& window, const Tensor& y,
                                  NormKind kind, const Tensor& gain, const Tensor& offset, double epsilon,
                                  const Tensor& statistics, const Tensor& normed) {
  const MaskRows mask = residual_mask(x, branch, bias, dropout, window, y, "residual_norm");
  cuda::residual_norm(slot(x.dtype), x.data, branch.data, bias.data, mask, y.data,
                      checked_norm(kind, y, gain, offset, epsilon, statistics, normed), stream());
  done("residual_norm");
}

void GpuOperations::norm_backward_input(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain,
                                        const Tensor& statistics, const Tensor& residual, const Tensor& dx) {
  require_norm_backward_input(dy, x, gain, statistics, residual, dx);
  cuda::norm_backward_input(slot(x.dtype), kind == NormKind::rms, dy.data, x.data, gain.data, statistics.data,
                            residual.data, dx.data, x.rows(), x.cols(), stream());
  done("norm_backward_input");
}

void GpuOperations::norm_backward_parameters(NormKind, const Tensor& dy, const Tensor& x,
                                             const Tensor& statistics, const Tensor& dgain,
                                             const Tensor& doffset) {
  const RowParts shape = norm_parameter_parts(dy, x, statistics, dgain, doffset);
  void* room = workspace(cuda::column_sums_workspace(shape), "norm_backward_parameters");
  cuda::norm_backward_parameters(slot(dy.dtype), dy.data, x.data, statistics.data, dgain.data, doffset.data,
                                 shape, room, workspace_.size(), stream());
  done("norm_backward_parameters");
}

void GpuOperations::bias_backward(const Tensor& dy, const Tensor& db) {
  const RowParts shape = row_parts(dy, db, "bias_backward", "db");
  void* room = workspace(cuda::column_sums_workspace(shape), "bias_backward");
  cuda::column_sums(slot(dy.dtype), dy.data, db.data, shape, room, workspace_.size(), stream());
  done("bias_backward");
}

void GpuOperations::rotary(const Heads& heads, double base, std::int64_t first_position, bool inverse) {
  const Shape& shape = heads.data.shape;
  require_rotary(heads);
  MP_REQUIRE(shape[3] <= cuda::widest_rotary, Exit::bad_configuration,
             "rotary: heads of width {} (at most {} on CUDA)", shape[3], cuda::widest_rotary);
  cuda::Frequencies frequencies{};
  for (std::int64_t i = 0; i < shape[3] / 2; ++i)
    frequencies.of[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(shape[3]));
  const cuda::RotaryCall call{heads.data.data, shape[0] * shape[1], shape[1],
                              shape[2],        heads.first,         heads.count,
                              shape[3],        first_position,      inverse};
  cuda::rotary(slot(heads.data.dtype), call, frequencies, stream());
  done("rotary");
}

}  // namespace mindpipe
