#include "cpu/simd/convolution_kernels.h"

#include "cpu/simd/rows.h"

/// Sums walk along a few rows at once, so that memory is read and written in few streams: the rows that these
/// share with those before still lie in a near cache. Rows that are not there are rows of zeros.
namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

constexpr int most_taps = 15;
constexpr int rows_at_once = MINDPIPE_ISA_LEVEL == 2 ? 8 : 2;
constexpr int64_t tile = 1024;  ///< columns of which rows of zeros are kept

/// Where the rows begin that some sums read, in a tile of columns.
template <class T>
struct Rows {
  T zeros[tile] = {};
  const T* at[rows_at_once + most_taps - 1] = {};

  /// Rows [row, row + rows) of a sample's tile, of which [0, limit) are there.
  void find(const T* sample, int64_t cols, int64_t row, int64_t rows, int64_t limit) {
    for (int64_t i = 0; i < rows; ++i)
      at[i] = row + i >= 0 && row + i < limit ? sample + (row + i) * cols : zeros;
  }
};

/// Calls body(first column, columns) for the tiles of columns [first, last).
template <class Body>
MINDPIPE_INLINE void for_tiles(int64_t first, int64_t last, const Body& body) {
  for (; first < last; first += tile) body(first, last - first < tile ? last - first : tile);
}

/// y[o] = sum over t of w[t] rows[o + t], in order of t; `step` leads from one tap to the next.
template <int rows, class T>
void tap_sums(const Rows<T>& in, const T* w, int64_t step, int64_t taps, T* y, int64_t cols, int64_t count) {
  using V = Lanes<T>;
  for_lanes<T>(count, [&](int64_t j, auto ending) {
    V sum[rows], window[rows];
#pragma GCC unroll 8
    for (int o = 0; o < rows; ++o) {
      sum[o] = all<V>(0);
      window[o] = read(in.at[o] + j, ending);
    }
    for (int64_t t = 0; t < taps; ++t) {
      const V tap = read(w + t * step + j, ending);
#pragma GCC unroll 8
      for (int o = 0; o < rows; ++o) sum[o] = multiply_add(tap, window[o], sum[o]);
      if (t + 1 == taps) break;
#pragma GCC unroll 8
      for (int o = 0; o + 1 < rows; ++o) window[o] = window[o + 1];
      window[rows - 1] = read(in.at[rows + t] + j, ending);
    }
#pragma GCC unroll 8
    for (int o = 0; o < rows; ++o) write(y + o * cols + j, sum[o], ending);
  });
}

/// Rows of a sample that are no padding.
inline int64_t length_of(const LengthCall& of, int64_t sample) {
  if (of.lengths == nullptr) return of.rows;
  const int64_t length = of.lengths[sample];
  return length < 0 ? 0 : length < of.rows ? length : of.rows;
}

/// Calls body(sample, first row, rows) for few rows of [first, last) of all samples at a time.
template <class Body>
MINDPIPE_INLINE void for_rows(const LengthCall& of, int64_t first, int64_t last, const Body& body) {
  while (first < last) {
    const int64_t sample = first / of.rows, row = first - sample * of.rows;
    int64_t rows = of.rows - row < last - first ? of.rows - row : last - first;
    rows = rows < rows_at_once ? rows : rows_at_once;
    body(sample, row, rows);
    first += rows;
  }
}

/// Sums over taps, in order of rows read: forwards, or back to the input with the taps turned round.
template <bool back, class T>
void depthwise(const void* x, const void* w, const TapCall& call, void* y, int64_t first, int64_t last) {
  const int64_t cols = call.of.cols, taps = call.taps, before = back ? taps - 1 - call.before : call.before,
                step = back ? -cols : cols;
  const T* first_tap = static_cast<const T*>(w) + (back ? (taps - 1) * cols : 0);
  Rows<T> found;
  for_rows(call.of, first, last, [&](int64_t sample, int64_t row, int64_t rows) {
    const int64_t length = length_of(call.of, sample), read_limit = back ? call.of.rows : length,
                  written = !back || length - row > rows ? rows
                            : length > row               ? length - row
                                                         : 0;
    const T* in = static_cast<const T*>(x) + sample * call.of.rows * cols;
    T* out = static_cast<T*>(y) + (sample * call.of.rows + row) * cols;
    if (written < rows)
      std::memset(out + written * cols, 0, static_cast<std::size_t>((rows - written) * cols) * sizeof(T));
    for_tiles(0, cols, [&](int64_t j, int64_t count) {
      if (written == rows_at_once) {
        found.find(in + j, cols, row - before, rows_at_once + taps - 1, read_limit);
        tap_sums<rows_at_once>(found, first_tap + j, step, taps, out + j, cols, count);
        return;
      }
      for (int64_t o = 0; o < written; ++o) {
        found.find(in + j, cols, row + o - before, taps, read_limit);
        tap_sums<1>(found, first_tap + j, step, taps, out + o * cols + j, cols, count);
      }
    });
  });
}

/// dw[t] += sum over o of dy[o] rows[o + t], in order of o
template <class T>
void add_products(const Rows<T>& dy, const Rows<T>& in, int64_t taps, Wide<T>* dw, int64_t cols,
                  int64_t count) {
  using V = Lanes<T>;
  constexpr int rows = rows_at_once;
  for_lanes<T>(count, [&](int64_t j, auto ending) {
    V d[rows], window[rows];
#pragma GCC unroll 8
    for (int o = 0; o < rows; ++o) {
      d[o] = read(dy.at[o] + j, ending);
      window[o] = read(in.at[o] + j, ending);
    }
    for (int64_t t = 0; t < taps; ++t) {
      V sum = read(dw + t * cols + j, ending);
#pragma GCC unroll 8
      for (int o = 0; o < rows; ++o) sum = multiply_add(d[o], window[o], sum);
      write(dw + t * cols + j, sum, ending);
      if (t + 1 == taps) break;
#pragma GCC unroll 8
      for (int o = 0; o + 1 < rows; ++o) window[o] = window[o + 1];
      window[rows - 1] = read(in.at[rows + t] + j, ending);
    }
  });
}

/// dw[t] += dy[r] x[r - before + t], a row at a time; columns [first, last)
template <class T>
void depthwise_backward_weight(const void* dy, const void* x, const TapCall& call, void* dw, int64_t first,
                               int64_t last) {
  const int64_t cols = call.of.cols, rows = call.of.rows;
  Rows<T> gradients, found;
  for_rows(call.of, 0, call.of.samples * rows, [&](int64_t sample, int64_t row, int64_t count_of_rows) {
    const T *d = static_cast<const T*>(dy) + sample * rows * cols,
            *in = static_cast<const T*>(x) + sample * rows * cols;
    const int64_t length = length_of(call.of, sample);
    for_tiles(first, last, [&](int64_t j, int64_t count) {
      gradients.find(d + j, cols, row, rows_at_once, row + count_of_rows);
      found.find(in + j, cols, row - call.before, rows_at_once + call.taps - 1, length);
      add_products(gradients, found, call.taps, static_cast<Wide<T>*>(dw) + j, cols, count);
    });
  });
}

/// dx[i] = sum over t of dy[i + before - t, t], in order of t
template <class T>
void neighbour_sums(const void* dy, const TapCall& call, void* dx, int64_t first, int64_t last) {
  using V = Lanes<T>;
  const int64_t cols = call.of.cols, rows = call.of.rows;
  for (int64_t n = first; n < last; ++n) {
    const int64_t sample = n / rows, i = n - sample * rows;
    const T* d = static_cast<const T*>(dy) + sample * rows * call.taps * cols;
    T* out = static_cast<T*>(dx) + n * cols;
    const bool there = i < length_of(call.of, sample);
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      V sum = all<V>(0);
      for (int64_t t = 0; there && t < call.taps; ++t) {
        const int64_t row = i + call.before - t;
        if (row >= 0 && row < rows) sum = sum + read(d + (row * call.taps + t) * cols + j, ending);
      }
      write(out + j, sum, ending);
    });
  }
}

/// p[t] = exp(w[t] - largest) / sum, over the taps of a column
template <class T>
inline void softmax_of_taps(const T* w, const SharedTaps& call, Wide<T>* p) {
  using A = Wide<T>;
  A highest = widen(w[0]), sum = 0;
  for (int t = 1; t < call.taps; ++t) {
    const A number = widen(w[t * call.columns]);
    highest = number > highest ? number : highest;
  }
  for (int t = 0; t < call.taps; ++t) {
    p[t] = static_cast<A>(__builtin_exp(static_cast<double>(widen(w[t * call.columns]) - highest)));
    sum += p[t];
  }
  for (int t = 0; t < call.taps; ++t) p[t] /= sum;
}

template <class T>
void share_taps(const void* w, const SharedTaps& call, void* y, int64_t first, int64_t last) {
  Wide<T> p[most_taps];
  for (int64_t c = first; c < last; ++c) {
    softmax_of_taps(static_cast<const T*>(w) + c, call, p);
    for (int t = 0; t < call.taps; ++t)
      for (int64_t i = c; i < call.channels; i += call.columns)
        put(static_cast<T*>(y)[t * call.channels + i], p[t]);
  }
}

template <class T>
void share_taps_backward(const void* dy, const void* w, const SharedTaps& call, void* dw, int64_t first,
                         int64_t last) {
  using A = Wide<T>;
  const A* d = static_cast<const A*>(dy);
  A p[most_taps], g[most_taps];
  for (int64_t c = first; c < last; ++c) {
    softmax_of_taps(static_cast<const T*>(w) + c, call, p);
    A mean = 0;
    for (int t = 0; t < call.taps; ++t) {
      g[t] = 0;
      for (int64_t i = c; i < call.channels; i += call.columns) g[t] += d[t * call.channels + i];
      mean += p[t] * g[t];
    }
    for (int t = 0; t < call.taps; ++t) static_cast<A*>(dw)[t * call.columns + c] += p[t] * (g[t] - mean);
  }
}

}  // namespace

const ConvolutionKernels convolution_kernels = {
    {depthwise<false, double>, depthwise<false, float>, depthwise<false, bf16>},
    {depthwise<true, double>, depthwise<true, float>, depthwise<true, bf16>},
    {depthwise_backward_weight<double>, depthwise_backward_weight<float>, depthwise_backward_weight<bf16>},
    {neighbour_sums<double>, neighbour_sums<float>, neighbour_sums<bf16>},
    {share_taps<double>, share_taps<float>, share_taps<bf16>},
    {share_taps_backward<double>, share_taps_backward<float>, share_taps_backward<bf16>},
};

}  // namespace mindpipe::MINDPIPE_ISA
