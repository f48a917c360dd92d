#include "cpu/simd/convolution_kernels.h"

#include "core/portable_math.h"
#include "cpu/simd/rows.h"

/// Sums walk down a block of columns, a few rows at a time. Its rows are widened once, in the order in which
/// they lie in memory, into a band in a near cache; while its sums are made, strip by strip of columns, rows
/// after it are on their way. Rows that are not there are zeros.
namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

constexpr int most_taps = 15;
constexpr int rows_at_once = MINDPIPE_ISA_LEVEL == 2 ? 8 : 2;
constexpr int band_rows = 32, tile = 512;  ///< rows between two fillings, and columns, of a band
constexpr int strip = 64;                  ///< columns that are done for all rows of a band
constexpr int pitch = tile + 16;  ///< from row to row: not all rows compete for the same lines of a cache

/// Stands in a loop that copies vectors: few are copied sooner so than by one instruction for strings.
MINDPIPE_INLINE void stay_a_loop() { asm volatile(""); }

/// So many rows of a block of columns, widened and filled up with zeros to whole vectors.
template <class T, int rows>
struct Band {
  using A = Wide<T>;
  alignas(64) A at[rows * pitch];

  MINDPIPE_INLINE void take(int64_t row, const T* from, int64_t count) {
    for_lanes<T>(count, [&](int64_t j, auto ending) {
      write(at + row * pitch + j, read(from + j, ending), Whole());
      stay_a_loop();
    });
  }
  /// Rows [first, first + count) of a sample's block of columns, of which [0, limit) are there.
  void fill(int64_t row, const T* sample, int64_t cols, int64_t first, int64_t count, int64_t limit,
            int64_t columns) {
    for (int64_t i = first; i < first + count; ++i, ++row) {
      if (i >= 0 && i < limit) take(row, sample + i * cols, columns);
      else std::memset(at + row * pitch, 0, sizeof(A) * tile);
    }
  }
  /// The last `count` filled rows, which begin at `band_rows`, become the first.
  MINDPIPE_INLINE void move_up(int64_t count, int64_t columns) {
    for (int64_t i = 0; i < count; ++i)
      for (A* to = at + i * pitch; to < at + i * pitch + columns; to += lanes_of<A>) {
        store(to, load(to + band_rows * pitch));
        stay_a_loop();
      }
  }
};
template <class T>
using RowBand = Band<T, band_rows + most_taps>;  // the last is read, not used

/// Asks for columns of rows [first, first + rows_at_once) of a sample, of which [0, limit) are there.
template <int is_written, class T>
MINDPIPE_INLINE void ask_for(const T* sample, int64_t cols, int64_t first, int64_t limit, int64_t columns) {
  const int64_t begin = first < 0 ? 0 : first,
                end = first + rows_at_once < limit ? first + rows_at_once : limit;
  for (int64_t row = begin; row < end; ++row)
    for (int64_t j = 0; j < columns; j += static_cast<int64_t>(64 / sizeof(T)))
      __builtin_prefetch(sample + row * cols + j, is_written, 2);
}

/// Calls body(first column, columns) for the blocks of columns [first, last), of `most` at most.
template <int most, class Body>
MINDPIPE_INLINE void for_tiles(int64_t first, int64_t last, const Body& body) {
  for (; first < last; first += most) body(first, last - first < most ? last - first : most);
}

/// y[o] = sum over t of w[t] in[o + t], in order of t, of the first `rows` rows
template <class T>
void tap_sums(const Wide<T>* in, const Wide<T>* w, int64_t taps, T* y, int64_t cols, int64_t count,
              int64_t rows) {
  using V = Lanes<T>;
  constexpr int most = rows_at_once;
  for_lanes<T>(count, [&](int64_t j, auto ending) {
    V sum[most], window[most];
#pragma GCC unroll 8
    for (int o = 0; o < most; ++o) {
      sum[o] = all<V>(0);
      window[o] = load(in + o * pitch + j);
    }
    for (int64_t first = 0; first < taps; first += most)
#pragma GCC unroll 8
      for (int i = 0; i < most; ++i) {  // row o of the window lies in place (o + i) % most
        if (first + i == taps) break;
        const V tap = load(w + (first + i) * pitch + j);
#pragma GCC unroll 8
        for (int o = 0; o < most; ++o) sum[o] = multiply_add(tap, window[(o + i) % most], sum[o]);
        window[i] = load(in + (most + first + i) * pitch + j);
      }
    if (rows >= most) {
#pragma GCC unroll 8
      for (int o = 0; o < most; ++o) write(y + o * cols + j, sum[o], ending);
    } else {
#pragma GCC unroll 8
      for (int o = 0; o < most; ++o)
        if (o < rows) write(y + o * cols + j, sum[o], ending);
    }
  });
}

/// Rows of a sample that are no padding.
inline int64_t length_of(const LengthCall& of, int64_t sample) {
  if (of.lengths == nullptr) return of.rows;
  const int64_t length = of.lengths[sample];
  return length < 0 ? 0 : length < of.rows ? length : of.rows;
}

/// Calls body(sample, first row, last row) for the samples of rows [first, last) of all samples.
template <class Body>
MINDPIPE_INLINE void for_samples(const LengthCall& of, int64_t first, int64_t last, const Body& body) {
  while (first < last) {
    const int64_t sample = first / of.rows, row = first - sample * of.rows,
                  rows = of.rows - row < last - first ? of.rows - row : last - first;
    body(sample, row, row + rows);
    first += rows;
  }
}

/// Calls body(row, rows) for rows [first, last) of a block of columns, when `in` holds those that their sums
/// read: from row - before on, of which [0, limit) are there.
template <class T, class Body>
MINDPIPE_INLINE void for_bands(RowBand<T>& in, const T* sample, int64_t cols, int64_t first, int64_t last,
                               int64_t before, int64_t taps, int64_t limit, int64_t columns,
                               const Body& body) {
  const int64_t shared = taps - 1;
  in.fill(0, sample, cols, first - before, shared, limit, columns);
  for (int64_t row = first; row < last; row += band_rows) {
    in.fill(shared, sample, cols, row - before + shared, band_rows, limit, columns);
    const int64_t rows = last - row < band_rows ? last - row : band_rows;
    for_tiles<strip>(0, columns, [&](int64_t j, int64_t count) {
      for (int64_t o = 0; o < rows; o += rows_at_once) {
        ask_for<0>(sample + j, cols, row + o - before + shared + band_rows, limit, count);
        body(row, o, rows - o, j, count);
      }
    });
    in.move_up(shared, columns);
  }
}

/// Sums over taps, in order of rows read: forwards, or back to the input with the taps turned round.
template <bool back, class T>
void depthwise(const void* x, const void* w, const TapCall& call, void* y, int64_t first, int64_t last) {
  const int64_t cols = call.of.cols, taps = call.taps, before = back ? taps - 1 - call.before : call.before;
  RowBand<T> in;
  Band<T, most_taps> turned;
  for_samples(call.of, first, last, [&](int64_t sample, int64_t begin, int64_t end) {
    const int64_t length = length_of(call.of, sample), read_limit = back ? call.of.rows : length,
                  at = sample * call.of.rows * cols;
    T* out = static_cast<T*>(y) + at;
    const int64_t there = !back || length > end ? end : length > begin ? length : begin;
    if (there < end)
      std::memset(out + there * cols, 0, static_cast<std::size_t>((end - there) * cols) * sizeof(T));
    for_tiles<tile>(0, cols, [&](int64_t tile_begin, int64_t width) {
      for (int64_t t = 0; t < taps; ++t)
        turned.take(back ? taps - 1 - t : t, static_cast<const T*>(w) + t * cols + tile_begin, width);
      T* to = out + tile_begin;
      for_bands(in, static_cast<const T*>(x) + at + tile_begin, cols, begin, there, before, taps, read_limit,
                width, [&](int64_t row, int64_t o, int64_t rows, int64_t j, int64_t count) {
                  ask_for<1>(to + j, cols, row + o + band_rows, there, count);
                  tap_sums<T>(in.at + o * pitch + j, turned.at + j, taps, to + (row + o) * cols + j, cols,
                              count, rows);
                });
    });
  });
}

/// dw[t] += sum over o of dy[o] in[o + t], in order of o
template <class T>
void add_products(const Wide<T>* dy, const Wide<T>* in, int64_t taps, Wide<T>* dw, int64_t count) {
  using A = Wide<T>;
  using V = Lanes<T>;
  constexpr int rows = rows_at_once;
  for (int64_t j = 0; j < count; j += lanes_of<T>) {
    V d[rows], window[rows];
#pragma GCC unroll 8
    for (int o = 0; o < rows; ++o) {
      d[o] = load(dy + o * pitch + j);
      window[o] = load(in + o * pitch + j);
    }
    for (int64_t first = 0; first < taps; first += rows)
#pragma GCC unroll 8
      for (int i = 0; i < rows; ++i) {
        if (first + i == taps) break;
        A* to = dw + (first + i) * pitch + j;
        V sum = load(to);
#pragma GCC unroll 8
        for (int o = 0; o < rows; ++o) sum = multiply_add(d[o], window[(o + i) % rows], sum);
        store(to, sum);
        window[i] = load(in + (rows + first + i) * pitch + j);
      }
  }
}

/// dw[t] += dy[r] x[r - before + t], a row at a time; columns [first, last)
template <class T>
void depthwise_backward_weight(const void* dy, const void* x, const TapCall& call, void* dw, int64_t first,
                               int64_t last) {
  using A = Wide<T>;
  const int64_t cols = call.of.cols, rows = call.of.rows, taps = call.taps;
  RowBand<T> in;
  Band<T, band_rows> gradients;
  Band<A, most_taps> sums;
  for_tiles<tile>(first, last, [&](int64_t tile_begin, int64_t width) {
    A* total = static_cast<A*>(dw) + tile_begin;
    for (int64_t t = 0; t < taps; ++t) sums.take(t, total + t * cols, width);
    for_samples(call.of, 0, call.of.samples * rows, [&](int64_t sample, int64_t begin, int64_t end) {
      const int64_t at = sample * rows * cols + tile_begin;
      const T* d = static_cast<const T*>(dy) + at;
      for_bands(
          in, static_cast<const T*>(x) + at, cols, begin, end, call.before, taps, length_of(call.of, sample),
          width, [&](int64_t row, int64_t o, int64_t, int64_t j, int64_t count) {
            if (j == 0 && o == 0) gradients.fill(0, d, cols, row, band_rows, end, width);
            ask_for<0>(d + j, cols, row + o + band_rows, end, count);
            add_products<T>(gradients.at + o * pitch + j, in.at + o * pitch + j, taps, sums.at + j, count);
          });
    });
    for (int64_t t = 0; t < taps; ++t)
      for_lanes<A>(width, [&](int64_t c, auto ending) {
        write(total + t * cols + c, load(sums.at + t * pitch + c), ending);
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
    p[t] = static_cast<A>(portable::exp(static_cast<double>(widen(w[t * call.columns]) - highest)));
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
