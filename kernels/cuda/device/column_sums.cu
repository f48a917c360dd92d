#include <type_traits>

#include "cuda/device/group.h"
#include "cuda/device/norm_kernels.h"
#include "operations/column_chunks.h"

/// Sums over rows in two steps, without atomics. A part's rows, sample after sample, are cut into chunks; a
/// warp adds a chunk's rows in order for a strip of columns; then the chunks' sums are added, eight runs of
/// them in order, and the runs in order. The rows of a part alone decide the split, so that a part by itself
/// has the bits that it has beside others. The sums as plain loops: `norm_backward` in
/// tests/kernels/reference.h.
namespace mindpipe::cuda {
namespace {

constexpr int warps = 4;  ///< warps of a block of the first step, each with a chunk of its own
constexpr int runs = 8;   ///< runs of chunks, in the second step
constexpr int rows_at_once = 8;

/// What is summed: dy, and with statistics dy (x - mean) / deviation too.
template <class T>
struct Columns {
  const T *dy, *x;
  const Wide<T>* statistics;
  RowParts shape;
  int64_t first, count;  ///< columns of this pass
  int64_t chunks;        ///< chunks for which each part has memory
};

template <class T>
inline constexpr int column_lanes = static_cast<int>(sizeof(T) < 8 ? 8 / sizeof(T) : 1);

/// Rows [row, row + rows) of dy, added one after the other to `plain` (and to `scaled`).
template <bool with_norm, class T, int size, class Ending>
__device__ inline void add_rows(const Columns<T>& in, int64_t row, int64_t rows, int64_t column,
                                Group<Wide<T>, size>& plain, Group<Wide<T>, size>& scaled, Ending ending) {
  using A = Wide<T>;
  const auto add_some = [&](auto how_many) {
    constexpr int some = decltype(how_many)::value;
    Raw<T, size> dy[some];
    [[maybe_unused]] Raw<T, size> x[with_norm ? some : 1];
    [[maybe_unused]] A mean[with_norm ? some : 1], inverse[with_norm ? some : 1];
#pragma unroll
    for (int i = 0; i < some; ++i) {
      dy[i] = fetch<size>(in.dy + (row + i) * in.shape.cols + column, ending);
      if constexpr (with_norm) {
        x[i] = fetch<size>(in.x + (row + i) * in.shape.cols + column, ending);
        mean[i] = in.statistics[2 * (row + i)];
        inverse[i] = in.statistics[2 * (row + i) + 1];
      }
    }
#pragma unroll
    for (int i = 0; i < some; ++i) {
      const auto d = widened(dy[i]);
#pragma unroll
      for (int k = 0; k < size; ++k) plain.x[k] += d.x[k];
      if constexpr (with_norm) {
        const auto h = widened(x[i]);
#pragma unroll
        for (int k = 0; k < size; ++k)
          scaled.x[k] = multiply_add(d.x[k], (h.x[k] - mean[i]) * inverse[i], scaled.x[k]);
      }
    }
    row += some;
    rows -= some;
  };
  while (rows >= rows_at_once) add_some(std::integral_constant<int, rows_at_once>{});
  while (rows > 0) add_some(std::integral_constant<int, 1>{});
}

/// sums[part, chunk, column of the pass]: one warp adds a chunk.
template <bool with_norm, class T>
__global__ void __launch_bounds__(32 * warps)
    chunk_sums(Columns<T> in, Wide<T>* scaled_sums, Wide<T>* plain_sums, bool wide) {
  constexpr int size = column_lanes<T>;
  const RowParts& shape = in.shape;
  const int64_t part = blockIdx.z, chunk = static_cast<int64_t>(blockIdx.y) * warps + threadIdx.x / 32;
  const int64_t j = (static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x % 32) * size;
  const int64_t begin = part * shape.rows / shape.parts, of_sample = rows_of_part(shape, part),
                all = shape.samples * of_sample;
  const int64_t each = chunk_rows(all), last = (chunk + 1) * each < all ? (chunk + 1) * each : all;
  if (j >= in.count || chunk * each >= all) return;
  const auto add_chunk = [&](auto ending) {
    Group<Wide<T>, size> plain{}, scaled{};
    for (int64_t t = chunk * each; t < last;) {
      const int64_t sample = t / of_sample, in_sample = t - sample * of_sample;
      const int64_t rows = of_sample - in_sample < last - t ? of_sample - in_sample : last - t;
      add_rows<with_norm>(in, sample * shape.rows + begin + in_sample, rows, in.first + j, plain, scaled,
                          ending);
      t += rows;
    }
    const int64_t at = (part * in.chunks + chunk) * in.count + j;
    if (plain_sums != nullptr) store(plain_sums + at, plain, ending);
    if constexpr (with_norm) store(scaled_sums + at, scaled, ending);
  };
  if (wide) add_chunk(Whole{});
  else add_chunk(Some{static_cast<int>(in.count - j < size ? in.count - j : size)});
}

/// One to three sums over rows, by their chunks.
template <class A>
struct ChunkedSums {
  const A* sums[3];  ///< [parts here, chunks, columns here]
  A* total[3];       ///< [parts, columns]
  RowParts shape;
  int64_t first_part, first_column, columns, chunks;
};

/// total[part, first + column] += the part's chunks: warp r adds the r-th run of them.
template <class A>
__global__ void __launch_bounds__(32 * runs) add_chunks(ChunkedSums<A> of) {
  __shared__ A of_run[runs][32];
  const A* sums = blockIdx.z == 0 ? of.sums[0] : blockIdx.z == 1 ? of.sums[1] : of.sums[2];
  A* total = blockIdx.z == 0 ? of.total[0] : blockIdx.z == 1 ? of.total[1] : of.total[2];
  const int64_t part = blockIdx.y, j = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x % 32;
  const int run = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t chunks = chunks_of_rows(of.shape.samples * rows_of_part(of.shape, of.first_part + part)),
                each = (chunks + runs - 1) / runs;
  const int64_t last = (run + 1) * each < chunks ? (run + 1) * each : chunks;
  A sum = 0;
  if (j < of.columns) {
#pragma unroll 8
    for (int64_t chunk = run * each; chunk < last; ++chunk)
      sum += sums[(part * of.chunks + chunk) * of.columns + j];
  }
  of_run[run][lane] = sum;
  __syncthreads();
  if (run != 0 || j >= of.columns) return;
  for (int r = 1; r < runs; ++r) sum += of_run[r][lane];
  total[(of.first_part + part) * of.shape.cols + of.first_column + j] += sum;
}

template <class A>
void start_add_chunks(const ChunkedSums<A>& of, int64_t parts, int64_t outputs, cudaStream_t stream) {
  launch(stream, Grid{blocks_for(of.columns, 32), 32 * runs, parts, outputs}, add_chunks<A>, of);
}

template <class T>
void sum_columns(const void* dy, const void* x, const void* statistics, Wide<T>* scaled_total,
                 Wide<T>* plain_total, const RowParts& shape, void* workspace, std::size_t bytes,
                 cudaStream_t stream) {
  using A = Wide<T>;
  constexpr int size = column_lanes<T>;
  const int64_t chunks = most_chunks_of(shape),
                outputs = (scaled_total != nullptr) + (plain_total != nullptr);
  if (chunks == 0 || shape.cols == 0) return;
  const int64_t fitting =
      static_cast<int64_t>(bytes / sizeof(A)) / (outputs * shape.parts * chunks) / 64 * 64;
  for (int64_t first = 0; first < shape.cols; first += fitting) {
    const int64_t count = shape.cols - first < fitting ? shape.cols - first : fitting;
    A* scaled = static_cast<A*>(workspace);
    A* plain = plain_total == nullptr    ? nullptr
               : scaled_total == nullptr ? scaled
                                         : scaled + shape.parts * chunks * count;
    const Columns<T> in{static_cast<const T*>(dy),
                        static_cast<const T*>(x),
                        static_cast<const A*>(statistics),
                        shape,
                        first,
                        count,
                        chunks};
    const bool wide = aligned(dy, x, workspace) && whole_rows<T>(shape.cols) && count % size == 0;
    const Grid grid{blocks_for(count, 32 * size), 32 * warps, blocks_for(chunks, warps), shape.parts};
    if (scaled_total != nullptr) launch(stream, grid, chunk_sums<true, T>, in, scaled, plain, wide);
    else launch(stream, grid, chunk_sums<false, T>, in, nullptr, plain, wide);
    const bool only_plain = scaled_total == nullptr;
    start_add_chunks(ChunkedSums<A>{{only_plain ? plain : scaled, plain, nullptr},
                                    {only_plain ? plain_total : scaled_total, plain_total, nullptr},
                                    shape,
                                    0,
                                    first,
                                    count,
                                    chunks},
                     shape.parts, outputs, stream);
  }
}

}  // namespace

void add_norm_chunks(const NormChunks& of, const RowParts& shape, std::int64_t first_part, std::int64_t parts,
                     cudaStream_t stream) {
  start_add_chunks(ChunkedSums<float>{{of.sums[0], of.sums[1], of.sums[2]},
                                      {of.totals[0], of.totals[1], of.totals[2]},
                                      shape,
                                      first_part,
                                      0,
                                      shape.cols,
                                      of.chunks},
                   parts, of.outputs, stream);
}

std::size_t column_sums_workspace(const RowParts& shape) {
  return static_cast<std::size_t>(2 * shape.parts * most_chunks_of(shape) * 64) * sizeof(double);
}

void column_sums(int type, const void* dy, void* db, const RowParts& shape, void* workspace,
                 std::size_t bytes, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    sum_columns<T>(dy, nullptr, nullptr, nullptr, static_cast<Wide<T>*>(db), shape, workspace, bytes, stream);
  });
}

void norm_backward_parameters(int type, const void* dy, const void* x, const void* statistics, void* dgain,
                              void* doffset, const RowParts& shape, void* workspace, std::size_t bytes,
                              cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    sum_columns<T>(dy, x, statistics, static_cast<Wide<T>*>(dgain), static_cast<Wide<T>*>(doffset), shape,
                   workspace, bytes, stream);
  });
}

}  // namespace mindpipe::cuda
