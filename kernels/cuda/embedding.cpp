#include <algorithm>

#include "cuda/device/embedding_kernels.h"
#include "cuda/gpu_operations.h"
#include "row_operands.h"

namespace mindpipe {
void GpuOperations::embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row,
                              const Tensor& y) {
  require_dtype(tokens, DType::i32, "embedding", "tokens");
  require(y, tokens.count() * table.cols(), table.dtype, "embedding", "y");
  slot(table.dtype);  // refuses what is no number
  const cuda::TableShape shape{table.rows(), table.cols(), first_row};
  cuda::embedding(static_cast<int>(bytes_of(table.dtype)), tokens.as<std::int32_t>(), table.data, shape,
                  y.data, tokens.count(), stream());
  done("embedding");
}

void GpuOperations::embedding_backward(const Tensor& tokens, const Tensor& dy, std::int64_t first_row,
                                       const Tensor& dtable) {
  const cuda::TableShape shape{dtable.rows(), dtable.cols(), first_row};
  require_dtype(tokens, DType::i32, "embedding_backward", "tokens");
  require_count(dy, tokens.count() * shape.cols, "embedding_backward", "dy");
  require_dtype(dtable, wide(dy.dtype), "embedding_backward", "dtable");
  MP_CHECK(shape.rows < std::int64_t{1} << 31,
           "embedding_backward: a table of {} rows (tokens are 32-bit numbers)", shape.rows);
  // What is too long to be sorted at once is added one stretch after the other: that, too, is the order of
  // the tokens.
  for (std::int64_t first = 0; first < tokens.count(); first += cuda::most_sorted) {
    const std::int64_t count = std::min(cuda::most_sorted, tokens.count() - first);
    void* room = workspace(cuda::sort_workspace(count), "embedding_backward");
    const cuda::SortedTokens sorted =
        cuda::sort_tokens(tokens.as<std::int32_t>() + first, count, shape, room, stream());
    cuda::add_by_row(slot(dy.dtype), sorted,
                     dy.as<std::byte>() + first * shape.cols * static_cast<std::int64_t>(bytes_of(dy.dtype)),
                     shape, dtable.data, count, stream());
  }
  done("embedding_backward");
}

void GpuOperations::add_positions(const Tensor& x, const Tensor& positions, const Window& window,
                                  std::int64_t first_position, const Tensor& y) {
  const std::int64_t first = first_position_of(x, positions, window, first_position, "add_positions");
  require_dtype(positions, x.dtype, "add_positions", "positions");
  require(y, x.count(), x.dtype, "add_positions", "y");
  cuda::add_positions(slot(x.dtype), x.data, positions.data, {window.samples, window.rows, x.cols(), first},
                      y.data, stream());
  done("add_positions");
}

void GpuOperations::positions_backward(const Tensor& dy, const Window& window, std::int64_t first_position,
                                       const Tensor& dpositions) {
  const std::int64_t first = first_position_of(dy, dpositions, window, first_position, "positions_backward");
  require_dtype(dpositions, wide(dy.dtype), "positions_backward", "dpositions");
  cuda::positions_backward(slot(dy.dtype), dy.data, {window.samples, window.rows, dy.cols(), first},
                           dpositions.data, stream());
  done("positions_backward");
}

}  // namespace mindpipe
