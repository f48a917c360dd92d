#include <cstring>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"
#include "row_operands.h"

namespace mindpipe {
namespace {

/// Row `row` of a matrix whose rows have `cols` elements.
void* row_of(const Tensor& t, std::int64_t row, std::int64_t cols) {
  return t.as<std::byte>() + row * cols * static_cast<std::int64_t>(bytes_of(t.dtype));
}

/// Columns, or elements, that stay with one thread: a multiple of a cache line.
constexpr std::int64_t strip = 64;

}  // namespace

void CpuBackend::embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row,
                           const Tensor& y) {
  const std::int64_t cols = table.cols(), rows = table.rows();
  require_dtype(tokens, DType::i32, "embedding", "tokens");
  require(y, tokens.count() * cols, table.dtype, "embedding", "y");
  const std::size_t bytes = static_cast<std::size_t>(cols) * bytes_of(table.dtype);
  const auto* ids = tokens.as<std::int32_t>();
  in_ranges(threads_, tokens.count(), row_grain(cols), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n) {
      const std::int64_t row = ids[n] - first_row;
      if (row >= 0 && row < rows) std::memcpy(row_of(y, n, cols), row_of(table, row, cols), bytes);
      else std::memset(row_of(y, n, cols), 0, bytes);
    }
  });
  progress();
}

void CpuBackend::embedding_backward(const Tensor& tokens, const Tensor& dy, std::int64_t first_row,
                                    const Tensor& dtable) {
  const std::int64_t cols = dtable.cols(), rows = dtable.rows();
  require_dtype(tokens, DType::i32, "embedding_backward", "tokens");
  require_count(dy, tokens.count() * cols, "embedding_backward", "dy");
  require_dtype(dtable, wide(dy.dtype), "embedding_backward", "dtable");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).accumulate[slot(dy.dtype)];
  const auto* ids = tokens.as<std::int32_t>();
  const std::int64_t strips = (cols + strip - 1) / strip;
  // A thread owns columns, so that every one of them is added in token order.
  in_ranges(threads_, strips, row_grain(strip * std::max<std::int64_t>(tokens.count(), 1)),
            [&](auto first, auto last) {
              const std::int64_t begin = first * strip, end = std::min(last * strip, cols);
              for (std::int64_t n = 0; n < tokens.count(); ++n) {
                const std::int64_t row = ids[n] - first_row;
                if (row >= 0 && row < rows)
                  kernel(row_of(dy, n, cols), row_of(dtable, row, cols), begin, end);
              }
            });
  progress();
}

void CpuBackend::add_positions(const Tensor& x, const Tensor& positions, const Window& window,
                               std::int64_t first_position, const Tensor& y) {
  const std::int64_t position = first_position_of(x, positions, window, first_position, "add_positions"),
                     cols = x.cols();
  require_dtype(positions, x.dtype, "add_positions", "positions");
  require(y, x.count(), x.dtype, "add_positions", "y");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).add[slot(x.dtype)];
  in_ranges(threads_, x.rows(), row_grain(cols), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n)
      kernel(row_of(x, n, cols), row_of(positions, position + n % window.rows, cols), row_of(y, n, cols), 0,
             cols);
  });
  progress();
}

void CpuBackend::positions_backward(const Tensor& dy, const Window& window, std::int64_t first_position,
                                    const Tensor& dpositions) {
  const std::int64_t position =
                         first_position_of(dy, dpositions, window, first_position, "positions_backward"),
                     cols = dy.cols();
  require_dtype(dpositions, wide(dy.dtype), "positions_backward", "dpositions");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).accumulate[slot(dy.dtype)];
  in_ranges(threads_, window.rows, row_grain(cols * window.samples), [&](auto first, auto last) {
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t s = 0; s < window.samples; ++s)
        kernel(row_of(dy, s * window.rows + r, cols), row_of(dpositions, position + r, cols), 0, cols);
  });
  progress();
}

}  // namespace mindpipe
