#pragma once
#include "cuda/device/number.h"
#include "cuda/launch.h"

/// Memory in groups of neighbouring elements: a thread reads and writes 16 bytes at a time where addresses
/// allow it, and otherwise the same elements one by one.
namespace mindpipe::cuda {

/// Elements in one access of 16 bytes.
template <class T>
inline constexpr int lanes = static_cast<int>(16 / sizeof(T));

/// How much of a group is there: all of it at an address that allows wide accesses, or its first elements.
struct Whole {};
struct Some {
  int count;
};

__device__ inline bool there(Whole, int) { return true; }
__device__ inline bool there(Some some, int k) { return k < some.count; }

template <class A, int size>
struct Group {
  A x[size];
};
/// The widest piece that `bytes` are moved in.
template <int bytes>
using PieceOf = std::conditional_t<bytes == 4, unsigned, std::conditional_t<bytes == 8, uint2, uint4>>;

template <int size, class T>
__device__ inline void move(const T* from, T* to, Whole) {
  using Piece = PieceOf<static_cast<int>(size * sizeof(T))>;
#pragma unroll
  for (int p = 0; p < static_cast<int>(size * sizeof(T) / sizeof(Piece)); ++p)
    reinterpret_cast<Piece*>(to)[p] = reinterpret_cast<const Piece*>(from)[p];
}
template <int size, class T>
__device__ inline void move(const T* from, T* to, Some some) {
#pragma unroll
  for (int k = 0; k < size; ++k)
    if (k < some.count) to[k] = from[k];
}

/// Writes to memory that other threads read. A plain assignment of a whole piece is split into four stores
/// of 4 bytes where the compiler has joined it with the other ending.
template <int size, class T>
__device__ inline void write(const T* from, T* to, Whole) {
  using Piece = PieceOf<static_cast<int>(size * sizeof(T))>;
#pragma unroll
  for (int p = 0; p < static_cast<int>(size * sizeof(T) / sizeof(Piece)); ++p)
    __stwb(reinterpret_cast<Piece*>(to) + p, reinterpret_cast<const Piece*>(from)[p]);
}
template <int size, class T>
__device__ inline void write(const T* from, T* to, Some some) {
  move<size>(from, to, some);
}

/// A group as it lies in memory, asked for and not used yet: a thread can have much on its way at once.
template <class T, int size>
struct Raw {
  alignas(16) T x[size];
};
/// What is not there reads as zero.
template <int size, class T, class Ending>
__device__ inline Raw<T, size> fetch(const T* from, Ending ending) {
  Raw<T, size> raw{};
  move<size>(from, raw.x, ending);
  return raw;
}
template <class T, int size>
__device__ inline Group<Wide<T>, size> widened(const Raw<T, size>& raw) {
  Group<Wide<T>, size> group;
#pragma unroll
  for (int k = 0; k < size; ++k) group.x[k] = widen(raw.x[k]);
  return group;
}
template <int size, class T, class Ending>
__device__ inline Group<Wide<T>, size> load(const T* from, Ending ending) {
  return widened(fetch<size>(from, ending));
}

template <int size, class T, class A>
__device__ inline void store(T* to, const Group<A, size>& group, Whole all) {
  alignas(16) T raw[size];
#pragma unroll
  for (int k = 0; k < size; ++k) put(raw[k], group.x[k]);
  write<size>(raw, to, all);
}
template <int size>
__device__ inline void store(bf16* to, const Group<float, size>& group, Whole) {
  static_assert(size % 2 == 0);
  alignas(16) std::uint32_t raw[size / 2];
#pragma unroll
  for (int k = 0; k < size; k += 2) raw[k / 2] = to_bf16_pair(group.x[k], group.x[k + 1]);
  write<size / 2>(raw, reinterpret_cast<std::uint32_t*>(to), Whole{});
}
template <int size, class T, class A>
__device__ inline void store(T* to, const Group<A, size>& group, Some some) {
#pragma unroll
  for (int k = 0; k < size; ++k)
    if (k < some.count) put(to[k], group.x[k]);
}

/// a / b for numbers that are not negative; the usual short ones take a fifth of the time of long ones.
__device__ inline int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

inline constexpr int group_threads = 256;

/// Threads for `count` elements in groups of `size`, one group each.
inline Grid grid_of_groups(int64_t count, int size) {
  return {blocks_for(blocks_for(count, size), group_threads), group_threads};
}
/// Threads for the rows of a matrix, one group each: a group lies in one row.
inline Grid grid_of_row_groups(int64_t rows, int64_t cols, int size) {
  return {blocks_for(rows * blocks_for(cols, size), group_threads), group_threads};
}

__device__ inline int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Calls body(first element, Whole or Some) for this thread's group of a grid of groups, if it has one.
template <int size, class Body>
__device__ inline void for_group(int64_t count, bool aligned, const Body& body) {
  const int64_t i = thread_index() * size;
  if (i >= count) return;
  if (aligned && count - i >= size) body(i, Whole{});
  else body(i, Some{static_cast<int>(count - i < size ? count - i : size)});
}
/// Calls body(row, first column, Whole or Some) in a grid of row groups. `aligned`: also of whole groups.
template <int size, class Body>
__device__ inline void for_row_group(int64_t rows, int64_t cols, bool aligned, const Body& body) {
  const int64_t index = thread_index(), in_row = (cols + size - 1) / size;
  const int64_t row = quotient(index, in_row), j = (index - row * in_row) * size;
  if (row >= rows) return;
  if (aligned) body(row, j, Whole{});
  else body(row, j, Some{static_cast<int>(cols - j < size ? cols - j : size)});
}

/// In a block of `threads`: calls body(first element, group, Whole or Some) for groups t, t + threads, ... of
/// thread t, in order; four are on their way at once.
template <int threads, int size, class T, class Body>
__device__ inline void for_groups_of_block(const T* from, int64_t count, bool aligned, const Body& body) {
  constexpr int64_t stride = threads * size;
  constexpr int ahead = 4;
  int64_t i = static_cast<int64_t>(threadIdx.x) * size;
  if (aligned)
    for (; i + (ahead - 1) * stride + size <= count; i += ahead * stride) {
      Raw<T, size> raw[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a) raw[a] = fetch<size>(from + i + a * stride, Whole{});
#pragma unroll
      for (int a = 0; a < ahead; ++a) body(i + a * stride, widened(raw[a]), Whole{});
    }
  for (; i < count; i += stride) {
    const Some some{static_cast<int>(count - i < size ? count - i : size)};
    if (aligned && some.count == size) body(i, load<size>(from + i, Whole{}), Whole{});
    else body(i, load<size>(from + i, some), some);
  }
}

/// Whether rows are whole groups, so that wide accesses may begin at each of them if at the first.
template <class T>
bool whole_rows(int64_t cols) {
  return cols % lanes<T> == 0;
}

/// Whether wide accesses may begin at all of these; none is a null pointer's answer too.
template <class... Pointers>
bool aligned(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

}  // namespace mindpipe::cuda
