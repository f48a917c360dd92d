#pragma once
#include "cuda/device/group.h"

/// Threads that work on one row together. The row's length alone decides how many, which element each takes
/// and in which order their sums are added: a row has the same bits beside any others.
namespace mindpipe::cuda {

inline constexpr int held_groups = 4;     ///< groups of a row that a thread keeps in registers
inline constexpr int most_threads = 512;  ///< threads of a row: the most that still leaves each 128 registers
inline constexpr int most_warps = most_threads / 32;

/// Threads of one row, a power of two from a warp up; how many rows a block takes.
struct TeamShape {
  int threads, rows;
};
inline TeamShape team_for(int64_t cols, int size) {
  int threads = 32;
  while (threads < most_threads && static_cast<int64_t>(threads) * held_groups * size < cols) threads *= 2;
  return {threads, threads < 128 ? 128 / threads : 1};
}
/// Whether the team keeps the row in registers: it must fit, and be of whole groups.
inline bool held(int64_t cols, int size) {
  return cols % size == 0 && cols <= static_cast<int64_t>(team_for(cols, size).threads) * held_groups * size;
}
inline Grid grid_of_teams(int64_t rows, TeamShape team) {
  return {blocks_for(rows, team.rows), team.threads * team.rows};
}

/// This thread's place in its team.
struct Team {
  int threads, rank;
  int64_t row;
  bool there;  ///< whether there is such a row; a team without one must still take part in sums

  __device__ Team(int threads_of_a_row, int64_t rows)
      : threads(threads_of_a_row),
        rank(static_cast<int>(threadIdx.x) % threads_of_a_row),
        row(static_cast<int64_t>(blockIdx.x) * (blockDim.x / static_cast<unsigned>(threads_of_a_row)) +
            threadIdx.x / static_cast<unsigned>(threads_of_a_row)),
        there(row < rows) {}

  /// Calls body(v, first column, Whole or Some) for this thread's groups; v counts those that are held.
  template <bool in_registers, int size, class Body>
  __device__ void walk(int64_t cols, const Body& body) const {
    if (!there) return;
    if constexpr (in_registers) {
#pragma unroll
      for (int v = 0; v < held_groups; ++v) {
        const int64_t j = static_cast<int64_t>(v * threads + rank) * size;
        if (j < cols) body(v, j, Whole{});
      }
    } else {
      for (int64_t j = static_cast<int64_t>(rank) * size; j < cols; j += static_cast<int64_t>(threads) * size)
        body(0, j, Some{static_cast<int>(cols - j < size ? cols - j : size)});
    }
  }
};

/// Two sums at a time: a + b in each place.
template <class A>
struct Pair {
  A a, b;
};
template <class A>
__device__ inline Pair<A> operator+(Pair<A> x, Pair<A> y) {
  return {x.a + y.a, x.b + y.b};
}

__device__ inline float from_lane_across(float x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}
__device__ inline double from_lane_across(double x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}
__device__ inline int from_lane_across(int x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}
__device__ inline int64_t from_lane_across(int64_t x, int distance) {
  return static_cast<int64_t>(__shfl_xor_sync(0xffffffffu, static_cast<long long>(x), distance));
}
template <class A>
__device__ inline Pair<A> from_lane_across(Pair<A> x, int distance) {
  return {from_lane_across(x.a, distance), from_lane_across(x.b, distance)};
}

struct Sum {
  template <class V>
  __device__ V operator()(V x, V y) const {
    return x + y;
  }
};
/// a > b ? a : b, where a NaN in b stays.
struct Largest {
  template <class V>
  __device__ V operator()(V x, V y) const {
    return x > y || x != x ? x : y;
  }
};

/// All of a warp's values joined by neighbours first: the same bits in every lane.
template <class V, class Join>
__device__ inline V join_warp(V x, const Join& join) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const V other = from_lane_across(x, distance);
    x = threadIdx.x % 32 & static_cast<unsigned>(distance) ? join(other, x) : join(x, other);
  }
  return x;
}

/// The values of a team's threads joined: the same bits in every thread. All threads of the block come here;
/// `of_warps` holds a value for each warp of the block and is used once in a kernel.
template <class V, class Join>
__device__ inline V join_team(V x, int team, V* of_warps, const Join& join) {
  x = join_warp(x, join);
  if (team <= 32) return x;
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = team / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) of_warps[warp] = x;
  __syncthreads();
  V total = of_warps[first];
  for (int w = 1; w < warps; ++w) total = join(total, of_warps[first + w]);
  return total;
}

/// The elements of a group added, neighbours first.
template <class A, int size>
__device__ inline A sum_of(const Group<A, size>& group) {
  A x[size];
#pragma unroll
  for (int k = 0; k < size; ++k) x[k] = group.x[k];
#pragma unroll
  for (int distance = 1; distance < size; distance *= 2) {
#pragma unroll
    for (int k = 0; k + distance < size; k += 2 * distance) x[k] += x[k + distance];
  }
  return x[0];
}

}  // namespace mindpipe::cuda
