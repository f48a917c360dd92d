#include "cuda/device/embedding_kernels.h"
#include "cuda/device/group.h"

/// Sorting by 8 bits of the row at a time, the lowest first, so that equal ones keep their order. A warp has
/// a chunk of tokens: it counts digits, the counts of all chunks are summed up, and it moves its tokens to
/// their places, 32 at a time. Whole numbers only, and no atomics.
namespace mindpipe::cuda {
namespace {

constexpr int digits = 256;
constexpr int sort_chunk = 1024;  ///< tokens of a warp
constexpr int scan_threads = 1024;

/// The digit counts of a chunk, kept by its warp; lane l owns digits l, l + 32, ...
struct Counters {
  std::uint32_t of[digits];
};

/// How many lanes before this one have the same digit, and how many in all; without a token: digit -1.
struct Peers {
  int before, all;
};
__device__ inline Peers peers_of(int digit) {
  const unsigned same = __match_any_sync(0xffffffffu, digit);
  return {__popc(same & ((1u << (threadIdx.x % 32)) - 1)), __popc(same)};
}

/// Calls body(index, digit) for the tokens of this warp's chunk, 32 side by side; digit -1 for none.
template <class Body>
__device__ inline void for_tokens(const std::uint32_t* rows, int64_t n, int shift, const Body& body) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * sort_chunk;
  for (int64_t i = begin + threadIdx.x; i - threadIdx.x < begin + sort_chunk && i - threadIdx.x < n; i += 32)
    body(i, i < n ? static_cast<int>(rows[i] >> shift & (digits - 1)) : -1);
}

/// rows[i] = the table row of token i, or `rows` where it has none
__global__ void find_rows(const std::int32_t* tokens, TableShape shape, std::uint32_t* rows,
                          std::uint32_t* order, int64_t n) {
  const int64_t i = thread_index();
  if (i >= n) return;
  const int64_t row = tokens[i] - shape.first_row;
  const bool counts = row >= 0 && row < shape.rows && tokens[i] != shape.dropped;
  rows[i] = static_cast<std::uint32_t>(counts ? row : shape.rows);
  order[i] = static_cast<std::uint32_t>(i);
}

/// counts[digit, chunk]
__global__ void __launch_bounds__(32)
    count_digits(const std::uint32_t* rows, int64_t n, int shift, std::uint32_t* counts) {
  __shared__ Counters mine;
  for (int d = static_cast<int>(threadIdx.x); d < digits; d += 32) mine.of[d] = 0;
  __syncwarp();
  for_tokens(rows, n, shift, [&](int64_t, int digit) {
    const Peers peers = peers_of(digit);
    if (digit >= 0 && peers.before == 0) mine.of[digit] += static_cast<std::uint32_t>(peers.all);
    __syncwarp();
  });
  for (int d = static_cast<int>(threadIdx.x); d < digits; d += 32)
    counts[d * static_cast<int64_t>(gridDim.x) + blockIdx.x] = mine.of[d];
}

/// counts[i] = sum of counts before i; one block walks over all
__global__ void __launch_bounds__(scan_threads) sum_up(std::uint32_t* counts, int64_t count) {
  __shared__ std::uint32_t of_warp[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint32_t carried = 0;
  for (int64_t begin = 0; begin < count; begin += scan_threads) {
    const int64_t i = begin + threadIdx.x;
    const std::uint32_t own = i < count ? counts[i] : 0;
    std::uint32_t sum = own;
#pragma unroll
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const std::uint32_t other = __shfl_up_sync(0xffffffffu, sum, distance);
      if (lane >= distance) sum += other;
    }
    if (lane == 31) of_warp[warp] = sum;
    __syncthreads();
    std::uint32_t before = carried;
    for (unsigned w = 0; w < 32; ++w) {
      if (w < warp) before += of_warp[w];
      carried += of_warp[w];
    }
    if (i < count) counts[i] = before + sum - own;
    __syncthreads();
  }
}

/// Moves the chunk's tokens to where the sums say, in their order.
__global__ void __launch_bounds__(32)
    move_tokens(const std::uint32_t* rows, const std::uint32_t* order, int64_t n, int shift,
                const std::uint32_t* starts, std::uint32_t* moved_rows, std::uint32_t* moved_order) {
  __shared__ Counters next;
  for (int d = static_cast<int>(threadIdx.x); d < digits; d += 32)
    next.of[d] = starts[d * static_cast<int64_t>(gridDim.x) + blockIdx.x];
  __syncwarp();
  for_tokens(rows, n, shift, [&](int64_t i, int digit) {
    const Peers peers = peers_of(digit);
    std::uint32_t place = 0;
    if (digit >= 0) place = next.of[digit] + static_cast<std::uint32_t>(peers.before);
    __syncwarp();
    if (digit >= 0) {
      if (peers.before == 0) next.of[digit] += static_cast<std::uint32_t>(peers.all);
      moved_rows[place] = rows[i];
      moved_order[place] = order[i];
    }
    __syncwarp();
  });
}

std::size_t list_bytes(int64_t n) { return static_cast<std::size_t>(blocks_for(n, 64)) * 256; }

}  // namespace

std::size_t sort_workspace(int64_t n) {
  return 4 * list_bytes(n) + list_bytes(digits * blocks_for(n, sort_chunk));
}

SortedTokens sort_tokens(const std::int32_t* tokens, int64_t n, const TableShape& shape, void* workspace,
                         cudaStream_t stream) {
  const auto list = [&](int i) {
    return reinterpret_cast<std::uint32_t*>(static_cast<char*>(workspace) +
                                            static_cast<std::size_t>(i) * list_bytes(n));
  };
  std::uint32_t *rows = list(0), *order = list(1), *other_rows = list(2), *other_order = list(3),
                *counts = list(4);
  launch(stream, grid_of_groups(n, 1), find_rows, tokens, shape, rows, order, n);
  const int64_t chunks = blocks_for(n, sort_chunk);
  for (int shift = 0; shift < 32 && shape.rows >> shift != 0; shift += 8) {
    launch(stream, Grid{chunks, 32}, count_digits, rows, n, shift, counts);
    launch(stream, Grid{1, scan_threads}, sum_up, counts, digits * chunks);
    launch(stream, Grid{chunks, 32}, move_tokens, rows, order, n, shift, counts, other_rows, other_order);
    std::uint32_t* kept = rows;
    rows = other_rows;
    other_rows = kept;
    kept = order;
    order = other_order;
    other_order = kept;
  }
  return {rows, order};
}

}  // namespace mindpipe::cuda
