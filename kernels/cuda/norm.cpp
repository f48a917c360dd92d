#include <algorithm>
#include <cmath>

#include "cuda/device/norm_kernels.h"
#include "cuda/gpu_operations.h"
#include "operations/rows.h"

namespace mindpipe {
namespace {

cuda::NormCall call_of(const NormOperands& o) {
  return {o.kind == NormKind::rms, o.gain.data, o.offset.data, o.epsilon,
          o.statistics.data,       o.y.data,    o.x.rows(),    o.x.cols()};
}

}  // namespace

void GpuOperations::run(const NormOperands& o) {
  cuda::norm(dtype_index(o.x.dtype), o.x.data, call_of(o), stream());
}

void GpuOperations::run(const ResidualNormOperands& o) {
  const MaskRows mask = o.residual().checked();
  cuda::residual_norm(dtype_index(o.x.dtype), o.x.data, o.branch.data, o.bias.data, mask, o.y.data,
                      call_of(o.norm()), stream());
}

void GpuOperations::run(const NormBackwardInputOperands& o) {
  cuda::norm_backward_input(dtype_index(o.x.dtype), o.kind == NormKind::rms, o.dy.data, o.x.data, o.gain.data,
                            o.statistics.data, o.residual.data, o.dx.data, o.x.rows(), o.x.cols(), stream());
}

void GpuOperations::run(const NormBackwardParametersOperands& o) {
  const RowParts shape = o.checked();
  void* memory = workspace(cuda::column_sums_workspace(shape), "norm_backward_parameters");
  cuda::norm_backward_parameters(dtype_index(o.dy.dtype), o.dy.data, o.x.data, o.statistics.data,
                                 o.dgain.data, o.doffset.data, shape, memory, workspace_.size(), stream());
}

void GpuOperations::run(const NormBackwardOperands& o) {
  const RowParts shape = o.checked();
  void* memory = workspace(cuda::column_sums_workspace(shape), "norm_backward");
  const cuda::NormBackwardCall call{o.kind == NormKind::rms, o.dy.data,       o.x.data,  o.gain.data,
                                    o.statistics.data,       o.residual.data, o.dx.data, o.dgain.data,
                                    o.doffset.data,          o.dbias.data};
  cuda::norm_backward(dtype_index(o.x.dtype), call, shape, memory, workspace_.size(), stream());
}

void GpuOperations::run(const BiasBackwardOperands& o) {
  const RowParts shape = o.checked();
  void* memory = workspace(cuda::column_sums_workspace(shape), "bias_backward");
  cuda::column_sums(dtype_index(o.dy.dtype), o.dy.data, o.db.data, shape, memory, workspace_.size(),
                    stream());
}

void GpuOperations::run(const RotaryOperands& o) {
  const Shape& shape = o.heads.data.shape;
  MP_REQUIRE(shape[3] <= cuda::widest_rotary, Exit::bad_configuration,
             "rotary: heads of width {} (at most {} on CUDA)", shape[3], cuda::widest_rotary);
  cuda::Frequencies frequencies{};
  std::copy(o.frequencies.begin(), o.frequencies.end(), frequencies.of);
  const cuda::RotaryCall call{o.heads.data.data, shape[0] * shape[1], shape[1],
                              shape[2],          o.heads.first,       o.heads.count,
                              shape[3],          o.first_position,    o.inverse};
  cuda::rotary(dtype_index(o.heads.data.dtype), call, frequencies, stream());
}

}  // namespace mindpipe
