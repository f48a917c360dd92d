#include <algorithm>

#include "cuda/device/embedding_kernels.h"
#include "cuda/gpu_operations.h"
#include "operations/embedding.h"

namespace mindpipe {
void GpuOperations::run(const EmbeddingOperands& o) {
  const cuda::TableShape shape{o.table.rows(), o.table.cols(), o.first_row};
  cuda::embedding(static_cast<int>(bytes_of(o.table.dtype)), o.tokens.as<std::int32_t>(), o.table.data, shape,
                  o.y.data, o.tokens.count(), stream());
}

void GpuOperations::run(const EmbeddingBackwardOperands& o) {
  const cuda::TableShape shape{o.dtable.rows(), o.dtable.cols(), o.first_row, o.dropped};
  MP_CHECK(shape.rows < std::int64_t{1} << 31,
           "embedding_backward: a table of {} rows (tokens are 32-bit numbers)", shape.rows);
  // What is too long to be sorted at once is added in pieces: that, too, is the order of the tokens.
  for (std::int64_t first = 0; first < o.tokens.count(); first += cuda::most_sorted) {
    const std::int64_t count = std::min(cuda::most_sorted, o.tokens.count() - first);
    void* memory = workspace(cuda::sort_workspace(count), "embedding_backward");
    const cuda::SortedTokens sorted =
        cuda::sort_tokens(o.tokens.as<std::int32_t>() + first, count, shape, memory, stream());
    cuda::add_by_row(
        dtype_index(o.dy.dtype), sorted,
        o.dy.as<std::byte>() + first * shape.cols * static_cast<std::int64_t>(bytes_of(o.dy.dtype)), shape,
        o.dtable.data, count, stream());
  }
}

void GpuOperations::run(const AddPositionsOperands& o) {
  const std::int64_t first = o.checked();
  cuda::add_positions(dtype_index(o.x.dtype), o.x.data, o.positions.data,
                      {o.sequence.samples, o.sequence.rows, o.x.cols(), first}, o.y.data, stream());
}

void GpuOperations::run(const AddSinusoidsOperands& o) {
  cuda::add_sinusoids(dtype_index(o.x.dtype), o.x.data, o.checked(), o.y.data, stream());
}

void GpuOperations::run(const PositionsBackwardOperands& o) {
  const std::int64_t first = o.checked();
  cuda::positions_backward(dtype_index(o.dy.dtype), o.dy.data,
                           {o.sequence.samples, o.sequence.rows, o.dy.cols(), first}, o.dpositions.data,
                           stream());
}

}  // namespace mindpipe
