#include "cpu/simd/batch_norm_kernels.h"
#include "cpu/simd/strips.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

/// y > 0 ? d : 0
MINDPIPE_INLINE Vector where_positive(Vector y, Vector d) { return select(greater(y, zero()), d, zero()); }
MINDPIPE_INLINE Single where_positive(Single y, Single d) { return {y.v > 0 ? d.v : 0}; }

int64_t rows_of_part(int64_t part, int64_t rows) {
  const int64_t left = rows - part * pixel_chunk;
  return left < pixel_chunk ? left : pixel_chunk;
}

/// Means of the rows of each part, and sums of squares around them
template <class T>
void moments(const void* x, void* parts, int64_t rows, int64_t cols, int64_t first, int64_t last) {
  using V = Lanes<T>;
  constexpr int width = lanes_of<T>;
  for (int64_t part = first; part < last; ++part) {
    const int64_t here = rows_of_part(part, rows);
    const T* from = static_cast<const T*>(x) + part * pixel_chunk * cols;
    Wide<T>* to = static_cast<Wide<T>*>(parts) + part * 2 * cols;
    for_strips<T>(0, cols, [&]<int vectors>(int64_t j, Strip<vectors>, auto ending) {
      V total[vectors], squares[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) total[v] = squares[v] = all<V>(0);
      for (int64_t i = 0; i < here; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) total[v] = total[v] + read(from + i * cols + j + v * width, ending);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) total[v] = total[v] / all<V>(static_cast<double>(here));
      for (int64_t i = 0; i < here; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          const V d = read(from + i * cols + j + v * width, ending) - total[v];
          squares[v] = multiply_add(d, d, squares[v]);
        }
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        write(to + j + v * width, total[v], ending);
        write(to + cols + j + v * width, squares[v], ending);
      }
    });
  }
}

constexpr int64_t block = 64;  ///< columns at once

/// With n rows so far and m in the next part: mean += d m / (n + m), squares += s + d^2 n m / (n + m), d the
/// difference of means
template <class A>
void statistics(const void* parts, int64_t rows, double epsilon, void* statistics, int64_t cols,
                int64_t first, int64_t last) {
  A* to = static_cast<A*>(statistics);
  for (int64_t begin = first; begin < last; begin += block) {
    const int64_t count = last - begin < block ? last - begin : block;
    double mean[block] = {}, squares[block] = {};
    for (int64_t part = 0; part * pixel_chunk < rows; ++part) {
      const A* from = static_cast<const A*>(parts) + part * 2 * cols + begin;
      const double before = static_cast<double>(part * pixel_chunk),
                   here = static_cast<double>(rows_of_part(part, rows)), share = here / (before + here);
#pragma GCC ivdep
      for (int64_t l = 0; l < count; ++l) {
        const double d = static_cast<double>(from[l]) - mean[l];
        mean[l] += d * share;
        squares[l] += static_cast<double>(from[cols + l]) + d * d * before * share;
      }
    }
    for (int64_t l = 0; l < count; ++l) {
      to[begin + l] = static_cast<A>(mean[l]);
      to[cols + begin + l] =
          static_cast<A>(1 / __builtin_sqrt(squares[l] / static_cast<double>(rows) + epsilon));
      to[2 * cols + begin + l] =
          static_cast<A>(rows == 1 ? squares[l] : squares[l] / static_cast<double>(rows - 1));
    }
  }
}

/// One column, or several beside each other, of a norm.
template <class T, class Ending>
struct Columns {
  using V = Lanes<T>;
  V mean, scale, gain, offset;
  MINDPIPE_INLINE Columns(const ColumnNorm& norm, int64_t j, Ending ending)
      : mean(read(static_cast<const Wide<T>*>(norm.statistics) + j, ending)),
        scale(read(static_cast<const Wide<T>*>(norm.statistics) + norm.cols + j, ending)),
        gain(read(static_cast<const T*>(norm.gain) + j, ending)),
        offset(read(static_cast<const T*>(norm.offset) + j, ending)) {}
  MINDPIPE_INLINE V normed(V x) const { return (x - mean) * scale; }
  MINDPIPE_INLINE V out(V h) const { return multiply_add(h, gain, offset); }
};

/// y = max((x - mean) / deviation * gain + offset, 0)
template <class T>
void forward(const ColumnNorm& norm, const void* x, void* y, int64_t first, int64_t last) {
  const int64_t cols = norm.cols;
  for (int64_t n = first; n < last; ++n) {
    const T* in = static_cast<const T*>(x) + n * cols;
    T* out = static_cast<T*>(y) + n * cols;
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      const Columns<T, decltype(ending)> columns(norm, j, ending);
      const Lanes<T> a = columns.out(columns.normed(read(in + j, ending)));
      write(out + j, norm.relu ? max(all<Lanes<T>>(0), a) : a, ending);
    });
  }
}

/// parts[i] = sums of d and d h
template <class T>
void backward_sums(const ColumnNorm& norm, const void* dy, const void* x, void* parts, int64_t first,
                   int64_t last) {
  const int64_t cols = norm.cols;
  for (int64_t part = first; part < last; ++part) {
    const int64_t here = rows_of_part(part, norm.rows), begin = part * pixel_chunk * cols;
    const T *gradient = static_cast<const T*>(dy) + begin, *in = static_cast<const T*>(x) + begin;
    Wide<T>* to = static_cast<Wide<T>*>(parts) + part * 2 * cols;
    for_strips<T>(0, cols, [&]<int vectors>(int64_t j, Strip<vectors>, auto ending) {
      using V = Lanes<T>;
      constexpr int width = lanes_of<T>;
      V plain[vectors], crossed[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) plain[v] = crossed[v] = all<V>(0);
      for (int64_t i = 0; i < here; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          const Columns<T, decltype(ending)> columns(norm, j + v * width, ending);
          const int64_t at = i * cols + j + v * width;
          const V h = columns.normed(read(in + at, ending));
          V d = read(gradient + at, ending);
          if (norm.relu) d = where_positive(columns.out(h), d);
          plain[v] = plain[v] + d;
          crossed[v] = multiply_add(d, h, crossed[v]);
        }
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        write(to + j + v * width, plain[v], ending);
        write(to + cols + j + v * width, crossed[v], ending);
      }
    });
  }
}

/// dx = residual + gain / deviation (d - mean(d) - h mean(d h))
template <class T>
void backward_input(const ColumnNorm& norm, const void* dy, const void* x, const void* sums,
                    const void* residual, void* dx, int64_t first, int64_t last) {
  using V = Lanes<T>;
  const int64_t cols = norm.cols;
  const Wide<T>* total = static_cast<const Wide<T>*>(sums);
  const V rows = all<V>(static_cast<double>(norm.rows));
  for (int64_t n = first; n < last; ++n) {
    const T *gradient = static_cast<const T*>(dy) + n * cols, *in = static_cast<const T*>(x) + n * cols,
            *past = residual == nullptr ? nullptr : static_cast<const T*>(residual) + n * cols;
    T* out = static_cast<T*>(dx) + n * cols;
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      const Columns<T, decltype(ending)> columns(norm, j, ending);
      const V h = columns.normed(read(in + j, ending));
      V d = read(gradient + j, ending);
      if (norm.relu) d = where_positive(columns.out(h), d);
      const V through = (d - read(total + j, ending) / rows - h * (read(total + cols + j, ending) / rows)) *
                        (columns.gain * columns.scale);
      write(out + j, past == nullptr ? through : read(past + j, ending) + through, ending);
    });
  }
}

}  // namespace

const BatchNormKernels batch_norm_kernels = {
    {moments<double>, moments<float>, moments<bf16>},
    {statistics<double>, statistics<float>},
    {forward<double>, forward<float>, forward<bf16>},
    {backward_sums<double>, backward_sums<float>, backward_sums<bf16>},
    {backward_input<double>, backward_input<float>, backward_input<bf16>},
};

}  // namespace mindpipe::MINDPIPE_ISA
