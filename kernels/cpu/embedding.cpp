#include <cstring>

#include "core/portable_math.h"
#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"
#include "operations/embedding.h"

namespace mindpipe {
namespace {

/// Row `row` of a matrix whose rows have `cols` elements.
void* row_of(const Tensor& t, std::int64_t row, std::int64_t cols) {
  return t.as<std::byte>() + row * cols * static_cast<std::int64_t>(bytes_of(t.dtype));
}

/// Columns, or elements, that stay with one thread: a multiple of a cache line.
constexpr std::int64_t strip_of_columns = 64;

/// Adds sines and cosines, of type A, to rows [first, last) of every sample, a strip_of_columns of columns at
/// a time.
template <class A, class Kernel>
void add_sines(const AddSinusoidsOperands& o, const SinusoidCall& call, const Kernel& kernel,
               std::int64_t first, std::int64_t last) {
  const std::int64_t half = call.cols / 2, bytes = static_cast<std::int64_t>(bytes_of(o.x.dtype));
  for (std::int64_t begin = 0; begin < half; begin += strip_of_columns) {
    const std::int64_t count = std::min(strip_of_columns, half - begin);
    double frequencies[strip_of_columns];
    for (std::int64_t i = 0; i < count; ++i)
      frequencies[i] = portable::exp(-call.rate * static_cast<double>(begin + i));
    for (std::int64_t r = first; r < last; ++r) {
      A sines[strip_of_columns], cosines[strip_of_columns];
      for (std::int64_t i = 0; i < count; ++i) {
        const auto [sine, cosine] =
            portable::sine_cosine(static_cast<double>(call.first + r) * frequencies[i]);
        sines[i] = static_cast<A>(sine);
        cosines[i] = static_cast<A>(cosine);
      }
      for (std::int64_t s = 0; s < call.samples; ++s) {
        const std::int64_t at = ((s * call.rows + r) * call.cols + begin) * bytes;
        const std::byte* x = o.x.as<std::byte>() + at;
        std::byte* y = o.y.as<std::byte>() + at;
        kernel(x, sines, y, count);
        kernel(x + half * bytes, cosines, y + half * bytes, count);
      }
    }
  }
}

}  // namespace

void CpuBackend::run(const EmbeddingOperands& o) {
  const std::int64_t cols = o.table.cols(), rows = o.table.rows();
  const std::size_t bytes = static_cast<std::size_t>(cols) * bytes_of(o.table.dtype);
  const auto* ids = o.tokens.as<std::int32_t>();
  in_ranges(threads_, o.tokens.count(), row_grain(cols), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n) {
      const std::int64_t row = ids[n] - o.first_row;
      if (row >= 0 && row < rows) std::memcpy(row_of(o.y, n, cols), row_of(o.table, row, cols), bytes);
      else std::memset(row_of(o.y, n, cols), 0, bytes);
    }
  });
}

void CpuBackend::run(const EmbeddingBackwardOperands& o) {
  const std::int64_t cols = o.dtable.cols(), rows = o.dtable.rows();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).accumulate[dtype_index(o.dy.dtype)];
  const auto* ids = o.tokens.as<std::int32_t>();
  const std::int64_t strips = (cols + strip_of_columns - 1) / strip_of_columns;
  // A thread owns columns, so that every one of them is added in token order.
  in_ranges(threads_, strips, row_grain(strip_of_columns * std::max<std::int64_t>(o.tokens.count(), 1)),
            [&](auto first, auto last) {
              const std::int64_t begin = first * strip_of_columns,
                                 end = std::min(last * strip_of_columns, cols);
              for (std::int64_t n = 0; n < o.tokens.count(); ++n) {
                const std::int64_t row = ids[n] - o.first_row;
                if (row >= 0 && row < rows && ids[n] != o.dropped)
                  kernel(row_of(o.dy, n, cols), row_of(o.dtable, row, cols), begin, end);
              }
            });
}

void CpuBackend::run(const AddPositionsOperands& o) {
  const std::int64_t position = o.checked(), cols = o.x.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).add[dtype_index(o.x.dtype)];
  in_ranges(threads_, o.x.rows(), row_grain(cols), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n)
      kernel(row_of(o.x, n, cols), row_of(o.positions, position + n % o.sequence.rows, cols),
             row_of(o.y, n, cols), 0, cols);
  });
}

void CpuBackend::run(const AddSinusoidsOperands& o) {
  const SinusoidCall call = o.checked();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).add_wide[dtype_index(o.x.dtype)];
  constexpr std::int64_t cost_of_a_sine = 16;  // beside an addition
  in_ranges(threads_, call.rows, row_grain(call.cols * (call.samples + cost_of_a_sine)),
            [&](auto first, auto last) {
              if (o.x.dtype == DType::f64) add_sines<double>(o, call, kernel, first, last);
              else add_sines<float>(o, call, kernel, first, last);
            });
}

void CpuBackend::run(const PositionsBackwardOperands& o) {
  const std::int64_t position = o.checked(), cols = o.dy.cols();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, elementwise_kernels).accumulate[dtype_index(o.dy.dtype)];
  in_ranges(threads_, o.sequence.rows, row_grain(cols * o.sequence.samples), [&](auto first, auto last) {
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t s = 0; s < o.sequence.samples; ++s)
        kernel(row_of(o.dy, s * o.sequence.rows + r, cols), row_of(o.dpositions, position + r, cols), 0,
               cols);
  });
}

}  // namespace mindpipe
