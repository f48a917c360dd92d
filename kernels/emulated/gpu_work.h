#pragma once
#include <algorithm>
#include <bit>

#include "arithmetic.h"
#include "device_description.h"
#include "operations/column_chunks.h"

/// How the GPU's kernels (cuda/device) do an operation, where they are several or move more than its
/// operands.
namespace mindpipe {

/// How many kernels are started, and bytes that they read and write beside what the operation itself moves.
struct GpuWork {
  int kernels = 1;
  double read = 0, written = 0;
};
/// Sums over rows keep chunks of `outputs` sums between two kernels.
inline GpuWork gpu_work_of_sums(const RowParts& shape, DType dtype, int outputs) {
  const double chunks = static_cast<double>(outputs * shape.parts * most_chunks_of(shape) * shape.cols) *
                        static_cast<double>(bytes_of(wide(dtype)));
  return {2, chunks, chunks};
}

template <class Operands>
GpuWork gpu_work(const Operands&) {
  return {};
}
inline GpuWork gpu_work(const BiasBackwardOperands& o) {
  return gpu_work_of_sums(o.checked(), o.dy.dtype, 1);
}
inline GpuWork gpu_work(const NormBackwardParametersOperands& o) {
  return gpu_work_of_sums(o.checked(), o.dy.dtype, o.doffset ? 2 : 1);
}
inline GpuWork gpu_work(const NormBackwardOperands& o) {
  const int outputs = 1 + (o.doffset ? 1 : 0) + (o.dbias ? 1 : 0);
  GpuWork work = gpu_work_of_sums(o.checked(), o.dy.dtype, outputs);
  if (o.x.cols() <= most_norm_columns(dtype_index(o.x.dtype))) return work;
  work.kernels += 1;
  work.read += static_cast<double>(o.dy.bytes() + o.x.bytes());
  if (o.dbias) {
    work.kernels += gpu_work(o.bias()).kernels;
    work.read += static_cast<double>(o.residual.bytes());
  }
  return work;
}
/// Tokens are sorted by 8 bits of their row at a time, by three kernels, which read a row and its token and
/// write both. Rows of the table are f32 beside bf16, and the operation itself counts them as wide as dy.
inline GpuWork gpu_work(const EmbeddingBackwardOperands& o) {
  const int passes = (std::bit_width(static_cast<std::uint64_t>(o.dtable.rows())) + 7) / 8;
  const double tokens = static_cast<double>(o.tokens.count()),
               wider = static_cast<double>(o.dy.count()) *
                       static_cast<double>(bytes_of(o.dtable.dtype) - bytes_of(o.dy.dtype));
  return {2 + 3 * passes, (4 + 12 * passes) * tokens + wider, (8 + 8 * passes) * tokens + wider};
}
/// Sums of before are read.
inline GpuWork gpu_work(const PositionsBackwardOperands& o) {
  return {.read = static_cast<double>(o.dpositions.bytes())};
}
/// Without dropout it is a copy, which is no kernel.
inline GpuWork gpu_work(const DropoutOperands& o) { return {.kernels = o.checked().threshold == 0 ? 0 : 1}; }
inline GpuWork gpu_work(const DepthwiseBackwardWeightOperands&) { return {.kernels = 2}; }
/// Logits whose row a block has no room for are read twice.
inline double read_again(const SoftmaxCrossEntropyOperands& o, const DeviceDescription& device) {
  const auto row = static_cast<std::int64_t>(o.logits.cols() * bytes_of(o.logits.dtype));
  return row <= device.block_bytes - beside_held_row ? 0 : static_cast<double>(o.logits.bytes());
}
/// A launch has room for so many ranges that are not empty.
template <class Operands>
requires requires(const Operands& o) { FlatSpan(o.spans[0]); }
GpuWork gpu_work(const Operands& o) {
  const auto ranges =
      std::count_if(o.spans.begin(), o.spans.end(), [](const FlatSpan& span) { return span.count > 0; });
  return {.kernels = static_cast<int>((ranges + most_spans - 1) / most_spans)};
}

}  // namespace mindpipe
