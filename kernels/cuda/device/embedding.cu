#include "cuda/device/embedding_kernels.h"

#include "cuda/device/group.h"

namespace mindpipe::cuda {
namespace {

/// Bits of elements are copied, whatever they mean.
template <class Bits>
__global__ void embedding_groups(const std::int32_t* tokens, const Bits* table, TableShape shape, Bits* y,
                                 int64_t rows, bool wide) {
  constexpr int size = lanes<Bits>;
  for_row_group<size>(rows, shape.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t row = tokens[n] - shape.first_row;
    alignas(16) Bits raw[size] = {};
    if (row >= 0 && row < shape.rows) move<size>(table + row * shape.cols + j, raw, ending);
    write<size>(raw, y + n * shape.cols + j, ending);
  });
}

template <class T>
__global__ void add_position_groups(const T* x, const T* positions, PositionCall call, T* y, bool wide) {
  constexpr int size = lanes<T>;
  for_row_group<size>(call.samples * call.rows, call.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t position = call.first + (n - quotient(n, call.rows) * call.rows);
    auto sum = load<size>(x + n * call.cols + j, ending);
    const auto added = load<size>(positions + position * call.cols + j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) sum.x[k] += added.x[k];
    store(y + n * call.cols + j, sum, ending);
  });
}

template <class T>
inline constexpr int sine_lanes = static_cast<int>(8 / sizeof(T));  ///< angles of a thread

/// A thread works out a few angles of one position in f64 and adds their sines and cosines in every sample.
template <class T>
__global__ void add_sinusoid_groups(const T* x, SinusoidCall call, T* y, bool wide) {
  using A = Wide<T>;
  constexpr int size = sine_lanes<T>;
  const int64_t half = call.cols / 2;
  for_row_group<size>(call.rows, half, wide, [&](int64_t r, int64_t i, auto ending) {
    Group<A, size> sines, cosines;
#pragma unroll
    for (int k = 0; k < size; ++k) {
      double s = 0, c = 1;
      if (i + k < half)
        sincos(static_cast<double>(call.first + r) * exp(-call.rate * static_cast<double>(i + k)), &s, &c);
      sines.x[k] = static_cast<A>(s);
      cosines.x[k] = static_cast<A>(c);
    }
    for (int64_t s = 0; s < call.samples; ++s) {
      const int64_t at = (s * call.rows + r) * call.cols + i;
      auto low = load<size>(x + at, ending), high = load<size>(x + at + half, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) {
        low.x[k] += sines.x[k];
        high.x[k] += cosines.x[k];
      }
      store(y + at, low, ending);
      store(y + at + half, high, ending);
    }
  });
}

/// A thread adds all samples' rows at one position, in order.
template <class T>
__global__ void position_gradient_groups(const T* dy, PositionCall call, Wide<T>* dpositions, bool wide) {
  using A = Wide<T>;
  constexpr int size = lanes<A>;
  for_row_group<size>(call.rows, call.cols, wide, [&](int64_t r, int64_t j, auto ending) {
    A* to = dpositions + (call.first + r) * call.cols + j;
    auto total = load<size>(to, ending);
#pragma unroll 4
    for (int64_t s = 0; s < call.samples; ++s) {
      const auto d = load<size>(dy + (s * call.rows + r) * call.cols + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) total.x[k] += d.x[k];
    }
    store(to, total, ending);
  });
}

constexpr int tokens_at_once = 8;

/// A warp stands at a place of the sorted tokens, for a strip of columns. If a table row begins there, it
/// adds the row's tokens one after the other, eight of them in flight; otherwise another warp does.
template <class T>
__global__ void __launch_bounds__(group_threads)
    add_token_rows(SortedTokens sorted, const T* dy, TableShape shape, Wide<T>* dtable, int64_t n,
                   bool wide) {
  using A = Wide<T>;
  constexpr int size = lanes<T>;
  const int64_t place = static_cast<int64_t>(blockIdx.x) * (group_threads / 32) + threadIdx.x / 32;
  const int64_t j = (static_cast<int64_t>(blockIdx.y) * 32 + threadIdx.x % 32) * size;
  if (place >= n || j >= shape.cols) return;
  const std::uint32_t row = sorted.row[place];
  if (row >= shape.rows || (place > 0 && sorted.row[place - 1] == row)) return;
  const auto add_all = [&](auto ending) {
    A* to = dtable + row * shape.cols + j;
    auto total = load<size>(to, ending);
    for (int64_t begin = place; begin < n; begin += tokens_at_once) {
      Raw<T, size> raw[tokens_at_once];
      bool mine[tokens_at_once];
#pragma unroll
      for (int i = 0; i < tokens_at_once;
           ++i) {  // without a branch: what is not this row's reads a token that is, and is not used
        const int64_t at = begin + i < n ? begin + i : n - 1;
        mine[i] = begin + i < n && sorted.row[at] == row;
        raw[i] = fetch<size>(dy + sorted.token[mine[i] ? at : place] * shape.cols + j, ending);
      }
#pragma unroll
      for (int i = 0; i < tokens_at_once; ++i) {
        const auto d = widened(raw[i]);
#pragma unroll
        for (int k = 0; k < size; ++k)
          if (mine[i]) total.x[k] += d.x[k];
      }
      if (!mine[tokens_at_once - 1]) break;
    }
    store(to, total, ending);
  };
  if (wide) add_all(Whole{});
  else add_all(Some{static_cast<int>(shape.cols - j < size ? shape.cols - j : size)});
}

}  // namespace

void embedding(int size, const std::int32_t* tokens, const void* table, const TableShape& shape, void* y,
               int64_t n, cudaStream_t stream) {
  const auto with = [&]<class Bits>(Bits) {
    launch(stream, grid_of_row_groups(n, shape.cols, lanes<Bits>), embedding_groups<Bits>, tokens, table,
           shape, y, n, aligned(table, y) && whole_rows<Bits>(shape.cols));
  };
  if (size == 2) with(std::uint16_t{});
  else if (size == 4) with(std::uint32_t{});
  else with(std::uint64_t{});
}

void add_positions(int type, const void* x, const void* positions, const PositionCall& call, void* y,
                   cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_row_groups(call.samples * call.rows, call.cols, lanes<T>), add_position_groups<T>,
           x, positions, call, y, aligned(x, positions, y) && whole_rows<T>(call.cols));
  });
}

void add_sinusoids(int type, const void* x, const SinusoidCall& call, void* y, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    constexpr int size = sine_lanes<T>;
    const int64_t half = call.cols / 2;
    launch(stream, grid_of_row_groups(call.rows, half, size), add_sinusoid_groups<T>, x, call, y,
           aligned(x, y) && half % size == 0);
  });
}

void positions_backward(int type, const void* dy, const PositionCall& call, void* dpositions,
                        cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_row_groups(call.rows, call.cols, lanes<Wide<T>>), position_gradient_groups<T>, dy,
           call, dpositions, aligned(dy, dpositions) && whole_rows<T>(call.cols));
  });
}

void add_by_row(int type, const SortedTokens& sorted, const void* dy, const TableShape& shape, void* dtable,
                int64_t n, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    const Grid grid{blocks_for(n, group_threads / 32), group_threads, blocks_for(shape.cols, 32 * lanes<T>)};
    launch(stream, grid, add_token_rows<T>, sorted, dy, shape, dtable, n,
           aligned(dy, dtable) && whole_rows<T>(shape.cols));
  });
}

}  // namespace mindpipe::cuda
