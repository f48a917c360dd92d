#include "cpu/simd/norm_kernels.h"

#include "cpu/simd/strips.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

/// mean = sum x / cols (0 for rms), variance = sum (x - mean)^2 / cols, in two passes; y = (x - mean) /
/// sqrt(variance + epsilon) gain + offset
template <class T>
void forward(bool rms, const void* x, const void* gain, const void* offset, double epsilon, void* statistics,
             void* y, int64_t cols, int64_t first, int64_t last) {
  using V = Lanes<T>;
  using A = Wide<T>;
  const T *g = static_cast<const T*>(gain), *b = static_cast<const T*>(offset);
  for (int64_t n = first; n < last; ++n) {
    const T* in = static_cast<const T*>(x) + n * cols;
    T* out = static_cast<T*>(y) + n * cols;
    A mean = 0;
    if (!rms) {
      V total = all<V>(0);
      for_lanes<T>(cols, [&](int64_t j, auto ending) { total = total + read(in + j, ending); });
      mean = sum(total) / static_cast<A>(cols);
    }
    const V center = all<V>(mean), nothing = all<V>(0);
    V squares = all<V>(0);
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      const V d = only(read(in + j, ending) - center, nothing, ending);
      squares = multiply_add(d, d, squares);
    });
    const A inverse = A(1) / square_root(sum(squares) / static_cast<A>(cols) + static_cast<A>(epsilon));
    A* s = static_cast<A*>(statistics) + 2 * n;
    s[0] = mean;
    s[1] = inverse;
    const V scale = all<V>(inverse);
    if (b != nullptr)
      for_lanes<T>(cols, [&](int64_t j, auto ending) {
        write(out + j,
              multiply_add((read(in + j, ending) - center) * scale, read(g + j, ending), read(b + j, ending)),
              ending);
      });
    else
      for_lanes<T>(cols, [&](int64_t j, auto ending) {
        write(out + j, (read(in + j, ending) - center) * scale * read(g + j, ending), ending);
      });
  }
}

/// With h = (x - mean) r and w = dy gain: dx = residual + r (w - mean(w) - h mean(w h)); rms has no mean(w)
template <class T>
void backward_input(bool rms, const void* dy, const void* x, const void* gain, const void* statistics,
                    const void* residual, void* dx, int64_t cols, int64_t first, int64_t last) {
  using V = Lanes<T>;
  using A = Wide<T>;
  const T* g = static_cast<const T*>(gain);
  for (int64_t n = first; n < last; ++n) {
    const T *d = static_cast<const T*>(dy) + n * cols, *in = static_cast<const T*>(x) + n * cols;
    const A* s = static_cast<const A*>(statistics) + 2 * n;
    const V center = all<V>(s[0]), scale = all<V>(s[1]);
    V plain = all<V>(0), crossed = all<V>(0);
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      const V w = read(d + j, ending) * read(g + j, ending);  // zero beyond the row's end
      plain = plain + w;
      crossed = multiply_add(w, (read(in + j, ending) - center) * scale, crossed);
    });
    const V mean_plain = all<V>(rms ? A(0) : sum(plain) / static_cast<A>(cols)),
            mean_crossed = all<V>(sum(crossed) / static_cast<A>(cols));
    T* out = static_cast<T*>(dx) + n * cols;
    const auto through = [&](int64_t j, auto ending) {
      const V h = (read(in + j, ending) - center) * scale;
      return (read(d + j, ending) * read(g + j, ending) - mean_plain - h * mean_crossed) * scale;
    };
    if (residual != nullptr) {
      const T* past = static_cast<const T*>(residual) + n * cols;
      for_lanes<T>(cols, [&](int64_t j, auto ending) {
        write(out + j, read(past + j, ending) + through(j, ending), ending);
      });
    } else {
      for_lanes<T>(cols, [&](int64_t j, auto ending) { write(out + j, through(j, ending), ending); });
    }
  }
}

constexpr int64_t rows_at_once = 8;  ///< a block of rows is read once from memory, strip after strip; more of
                                     ///< them are more streams than prefetchers follow

/// Calls body(first row of a sample, rows, part index) for blocks of rows, parts and samples in order.
template <class Body>
void for_row_blocks(const RowParts& shape, const Body& body) {
  for (int64_t part = 0; part < shape.parts; ++part)
    for (int64_t sample = 0; sample < shape.samples; ++sample) {
      const int64_t begin = part * shape.rows / shape.parts, end = (part + 1) * shape.rows / shape.parts;
      for (int64_t row = begin; row < end; row += rows_at_once)
        body(sample * shape.rows + row, end - row < rows_at_once ? end - row : rows_at_once, part);
    }
}

/// db[part, j] += dy[.., j], a row at a time
template <class T, int vectors, class Ending>
void add_rows(const T* dy, int64_t rows, int64_t cols, Wide<T>* db, Strip<vectors>, Ending ending) {
  using V = Lanes<T>;
  constexpr int width = lanes_of<T>;
  V total[vectors];
  for (int v = 0; v < vectors; ++v) total[v] = read(db + v * width, ending);
  for (int64_t i = 0; i < rows; ++i)
    for (int v = 0; v < vectors; ++v) total[v] = total[v] + read(dy + i * cols + v * width, ending);
  for (int v = 0; v < vectors; ++v) write(db + v * width, total[v], ending);
}

template <class T>
void column_sums(const void* dy, void* db, const RowParts& shape, int64_t first, int64_t last) {
  for_row_blocks(shape, [&](int64_t row, int64_t rows, int64_t part) {
    const T* d = static_cast<const T*>(dy) + row * shape.cols;
    Wide<T>* out = static_cast<Wide<T>*>(db) + part * shape.cols;
    for_strips<T>(first, last, [&](int64_t j, auto strip, auto ending) {
      add_rows(d + j, rows, shape.cols, out + j, strip, ending);
    });
  });
}

/// dgain[part, j] += dy (x - mean) r, doffset[part, j] += dy, a row at a time
template <bool with_offset, class T, int vectors, class Ending>
void add_norm_rows(const T* dy, const T* x, const Wide<T>* statistics, int64_t rows, int64_t cols,
                   Wide<T>* dgain, Wide<T>* doffset, Strip<vectors>, Ending ending) {
  using V = Lanes<T>;
  constexpr int width = lanes_of<T>;
  V gain[vectors], offset[vectors];
  for (int v = 0; v < vectors; ++v) {
    gain[v] = read(dgain + v * width, ending);
    if constexpr (with_offset) offset[v] = read(doffset + v * width, ending);
  }
  for (int64_t i = 0; i < rows; ++i) {
    const V center = all<V>(statistics[2 * i]), scale = all<V>(statistics[2 * i + 1]);
    for (int v = 0; v < vectors; ++v) {
      const V d = read(dy + i * cols + v * width, ending);
      gain[v] = multiply_add(d, (read(x + i * cols + v * width, ending) - center) * scale, gain[v]);
      if constexpr (with_offset) offset[v] = offset[v] + d;
    }
  }
  for (int v = 0; v < vectors; ++v) {
    write(dgain + v * width, gain[v], ending);
    if constexpr (with_offset) write(doffset + v * width, offset[v], ending);
  }
}

template <class T>
void backward_parameters(const void* dy, const void* x, const void* statistics, void* dgain, void* doffset,
                         const RowParts& shape, int64_t first, int64_t last) {
  for_row_blocks(shape, [&](int64_t row, int64_t rows, int64_t part) {
    const int64_t cols = shape.cols;
    const T *d = static_cast<const T*>(dy) + row * cols, *in = static_cast<const T*>(x) + row * cols;
    const Wide<T>* s = static_cast<const Wide<T>*>(statistics) + 2 * row;
    Wide<T>* gain = static_cast<Wide<T>*>(dgain) + part * cols;
    Wide<T>* offset = static_cast<Wide<T>*>(doffset);
    if (offset != nullptr) {
      offset += part * cols;
      for_strips<T>(first, last, [&](int64_t j, auto strip, auto ending) {
        add_norm_rows<true>(d + j, in + j, s, rows, cols, gain + j, offset + j, strip, ending);
      });
    } else {
      Wide<T>* none = nullptr;
      for_strips<T>(first, last, [&](int64_t j, auto strip, auto ending) {
        add_norm_rows<false>(d + j, in + j, s, rows, cols, gain + j, none, strip, ending);
      });
    }
  });
}

/// (a, b) -> (a cos - b sin, b cos + a sin)
template <class T>
void rotary(void* data, const double* cosines, const double* sines, int64_t table_rows, int64_t heads,
            int64_t head, int64_t count, int64_t width, bool inverse, int64_t first, int64_t last) {
  using A = Wide<T>;
  const int64_t half = width / 2;
  const A sign = inverse ? A(-1) : A(1);
  for (int64_t n = first; n < last; ++n) {
    const double *c = cosines + n % table_rows * half, *s = sines + n % table_rows * half;
    for (int64_t h = head; h < head + count; ++h) {
      T *low = static_cast<T*>(data) + (n * heads + h) * width, *high = low + half;
#pragma GCC ivdep
      for (int64_t i = 0; i < half; ++i) {
        const A a = widen(low[i]), b = widen(high[i]), cosine = static_cast<A>(c[i]),
                sine = sign * static_cast<A>(s[i]);
        put(low[i], a * cosine - b * sine);
        put(high[i], b * cosine + a * sine);
      }
    }
  }
}

}  // namespace

const NormKernels norm_kernels = {
    {forward<double>, forward<float>, forward<bf16>},
    {backward_input<double>, backward_input<float>, backward_input<bf16>},
    {backward_parameters<double>, backward_parameters<float>, backward_parameters<bf16>},
    {column_sums<double>, column_sums<float>, column_sums<bf16>},
    {rotary<double>, rotary<float>, rotary<bf16>},
};

}  // namespace mindpipe::MINDPIPE_ISA
