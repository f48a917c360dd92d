#include "cpu/simd/convolution_kernels.h"

#include "cpu/simd/rows.h"

/// A strip of columns of a few rows and their neighbours is copied aside first, as the numbers that are
/// computed with and with zeros where there is no row: a row's neighbours are read from the nearest cache,
/// and the sums have no edges.
namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

constexpr int64_t strip = 64, most_taps = 15;  ///< columns copied aside at once; of a convolution
constexpr int64_t block = 16;                  ///< rows that are summed from one copy
constexpr int rows_at_once = 4, vectors_at_once = MINDPIPE_ISA_LEVEL == 2 ? 4 : 1;

/// What is copied aside: rows with the neighbours of the first and the last one, and numbers of taps.
template <class T>
struct Aside {
  alignas(64) Wide<T> rows[(block + most_taps - 1) * strip];
  alignas(64) Wide<T> taps[most_taps * strip];
};

/// `count` numbers as they are computed with, and zeros behind them up to a whole strip.
template <class T>
MINDPIPE_INLINE void copy_aside(const T* from, int64_t count, Wide<T>* to) {
  using V = Lanes<T>;
  constexpr int64_t width = lanes_of<T>;
  for_lanes<T>(count, [&](int64_t j, auto ending) { store(to + j, read(from + j, ending)); });
  for (int64_t j = (count + width - 1) / width * width; j < strip; j += width) store(to + j, all<V>(0));
}

/// Copies rows [row, row + rows) aside, of which [0, limit) are there. `from` is the sample's column.
template <class T>
MINDPIPE_INLINE void copy_rows(const T* from, int64_t cols, int64_t row, int64_t rows, int64_t limit,
                               int64_t count, Wide<T>* to) {
  for (int64_t i = 0; i < rows; ++i) {
    const bool there = row + i >= 0 && row + i < limit;
    copy_aside<T>(there ? from + (row + i) * cols : from, there ? count : 0, to + i * strip);
  }
}

/// Writes vectors of a strip whose first `count` columns are there.
template <class T>
MINDPIPE_INLINE void write_column(T* y, Lanes<T> sum, int64_t column, int64_t count) {
  constexpr int64_t width = lanes_of<T>;
  if (column + width <= count) write(y + column, sum, Whole{});
  else if (column < count) write(y + column, sum, Some{static_cast<int>(count - column)});
}

/// y[o] = sum over t of taps[t] rows[o + t], in order of t
template <int rows, class T>
MINDPIPE_INLINE void tap_sums(const Wide<T>* in, const Wide<T>* taps, int64_t count_of_taps, T* y,
                              int64_t cols, int64_t count) {
  using V = Lanes<T>;
  constexpr int64_t width = lanes_of<T>;
  for (int64_t j = 0; j < count; j += vectors_at_once * width) {
    V sum[rows][vectors_at_once];
    for (int o = 0; o < rows; ++o)
      for (int v = 0; v < vectors_at_once; ++v) sum[o][v] = all<V>(0);
    for (int64_t t = 0; t < count_of_taps; ++t) {
      V tap[vectors_at_once];
      for (int v = 0; v < vectors_at_once; ++v) tap[v] = load(taps + t * strip + j + v * width);
      for (int o = 0; o < rows; ++o)
        for (int v = 0; v < vectors_at_once; ++v)
          sum[o][v] = multiply_add(tap[v], load(in + (o + t) * strip + j + v * width), sum[o][v]);
    }
    for (int o = 0; o < rows; ++o)
      for (int v = 0; v < vectors_at_once; ++v)
        write_column<T>(y + o * cols, sum[o][v], j + v * width, count);
  }
}

/// Rows of a sample that are no padding.
inline int64_t length_of(const LengthCall& of, int64_t sample) {
  if (of.lengths == nullptr) return of.rows;
  const int64_t length = of.lengths[sample];
  return length < 0 ? 0 : length < of.rows ? length : of.rows;
}

/// Calls body(sample, first row, rows) for blocks of rows [first, last) of all samples.
template <class Body>
MINDPIPE_INLINE void for_blocks(const LengthCall& of, int64_t first, int64_t last, const Body& body) {
  while (first < last) {
    const int64_t sample = first / of.rows, row = first - sample * of.rows;
    int64_t rows = of.rows - row < last - first ? of.rows - row : last - first;
    rows = rows < block ? rows : block;
    body(sample, row, rows);
    first += rows;
  }
}

/// Sums over taps, in order of rows read: forwards, or back to the input with the taps turned round.
template <bool back, class T>
void depthwise(const void* x, const void* w, const TapCall& call, void* y, int64_t first, int64_t last) {
  const int64_t cols = call.of.cols, taps = call.taps, before = back ? taps - 1 - call.before : call.before;
  Aside<T> aside;
  for_blocks(call.of, first, last, [&](int64_t sample, int64_t row, int64_t rows) {
    const int64_t length = length_of(call.of, sample), read_limit = back ? call.of.rows : length,
                  written = !back || length - row > rows ? rows
                            : length > row               ? length - row
                                                         : 0;
    const T* in = static_cast<const T*>(x) + sample * call.of.rows * cols;
    T* out = static_cast<T*>(y) + (sample * call.of.rows + row) * cols;
    if (written < rows)
      std::memset(out + written * cols, 0, static_cast<std::size_t>((rows - written) * cols) * sizeof(T));
    for (int64_t j = 0; j < cols; j += strip) {
      const int64_t count = cols - j < strip ? cols - j : strip;
      for (int64_t t = 0; t < taps; ++t)
        copy_aside<T>(static_cast<const T*>(w) + (back ? taps - 1 - t : t) * cols + j, count,
                      aside.taps + t * strip);
      copy_rows<T>(in + j, cols, row - before, written + taps - 1, read_limit, count, aside.rows);
      int64_t o = 0;
      for (; o + rows_at_once <= written; o += rows_at_once)
        tap_sums<rows_at_once, T>(aside.rows + o * strip, aside.taps, taps, out + o * cols + j, cols, count);
      for (; o < written; ++o)
        tap_sums<1, T>(aside.rows + o * strip, aside.taps, taps, out + o * cols + j, cols, count);
    }
  });
}

/// sums[t] += dy[o] rows[o + t] for `some` taps, in order of rows o
template <int some, class A>
MINDPIPE_INLINE void add_products(const A* dy, const A* in, int64_t rows, A* sums) {
  using V = Lanes<A>;
  constexpr int64_t width = lanes_of<A>;
  for (int64_t j = 0; j < strip; j += width) {
    V sum[some];
    for (int t = 0; t < some; ++t) sum[t] = load(sums + t * strip + j);
    for (int64_t o = 0; o < rows; ++o) {
      const V d = load(dy + o * strip + j);
      for (int t = 0; t < some; ++t) sum[t] = multiply_add(d, load(in + (o + t) * strip + j), sum[t]);
    }
    for (int t = 0; t < some; ++t) store(sums + t * strip + j, sum[t]);
  }
}

/// dw[t] += dy[r] x[r - before + t], a row at a time; columns [first, last)
template <class T>
void depthwise_backward_weight(const void* dy, const void* x, const TapCall& call, void* dw, int64_t first,
                               int64_t last) {
  using A = Wide<T>;
  const int64_t cols = call.of.cols, taps = call.taps;
  Aside<T> aside;
  alignas(64) A gradient[block * strip];
  A* total = static_cast<A*>(dw);
  for_blocks(call.of, 0, call.of.samples * call.of.rows, [&](int64_t sample, int64_t row, int64_t rows) {
    const int64_t start = sample * call.of.rows;
    for (int64_t j = first; j < last; j += strip) {
      const int64_t count = last - j < strip ? last - j : strip;
      copy_rows<T>(static_cast<const T*>(dy) + start * cols + j, cols, row, rows, call.of.rows, count,
                   gradient);
      copy_rows<T>(static_cast<const T*>(x) + start * cols + j, cols, row - call.before, rows + taps - 1,
                   length_of(call.of, sample), count, aside.rows);
      for (int64_t t = 0; t < taps; ++t) copy_aside<A>(total + t * cols + j, count, aside.taps + t * strip);
      int64_t t = 0;
      for (; t + 4 <= taps; t += 4)
        add_products<4>(gradient, aside.rows + t * strip, rows, aside.taps + t * strip);
      for (; t < taps; ++t) add_products<1>(gradient, aside.rows + t * strip, rows, aside.taps + t * strip);
      for (t = 0; t < taps; ++t)
        for_lanes<A>(count, [&](int64_t i, auto ending) {
          write(total + t * cols + j + i, load(aside.taps + t * strip + i), ending);
        });
    }
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
