#include "cpu/simd/elementwise_kernels.h"

#include "cpu/simd/activation.h"
#include "cpu/simd/number.h"
#include "cpu/simd/philox.h"
#include "cpu/simd/rows.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

template <class T>
void add(const void* a, const void* b, void* sum, int64_t first, int64_t last) {
  const T *pa = static_cast<const T*>(a), *pb = static_cast<const T*>(b);
  T* ps = static_cast<T*>(sum);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) put(ps[i], widen(pa[i]) + widen(pb[i]));
}

template <class T>
void multiply(const void* a, const void* b, void* product, int64_t first, int64_t last) {
  const T *pa = static_cast<const T*>(a), *pb = static_cast<const T*>(b);
  T* pp = static_cast<T*>(product);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) put(pp[i], widen(pa[i]) * widen(pb[i]));
}

template <class T>
void accumulate(const void* part, void* total, int64_t first, int64_t last) {
  const T* p = static_cast<const T*>(part);
  Wide<T>* t = static_cast<Wide<T>*>(total);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) t[i] += widen(p[i]);
}

template <class T>
void add_wide(const void* x, const void* wide, void* y, int64_t count) {
  const T* px = static_cast<const T*>(x);
  const Wide<T>* pw = static_cast<const Wide<T>*>(wide);
  T* py = static_cast<T*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) put(py[i], widen(px[i]) + pw[i]);
}

template <class From, class To>
void convert(const void* x, void* y, int64_t first, int64_t last) {
  const From* px = static_cast<const From*>(x);
  To* py = static_cast<To*>(y);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) put(py[i], widen(px[i]));
}

/// y = g s u, s = 1 / (1 + exp(-g))
template <class T>
void swiglu(const void* gate_up, void* y, int64_t cols, int64_t first, int64_t last) {
  using V = Lanes<T>;
  for (int64_t n = first; n < last; ++n) {
    const T *gate = static_cast<const T*>(gate_up) + n * 2 * cols, *up = gate + cols;
    T* out = static_cast<T*>(y) + n * cols;
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      const V g = read(gate + j, ending);
      write(out + j, g * sigmoid(g).of * read(up + j, ending), ending);
    });
  }
}

/// s = 1 / (1 + exp(-g)); dg = dy u s (1 + g (1 - s)), du = dy g s
template <class T>
void swiglu_backward(const void* dy, const void* gate_up, void* dgate_up, int64_t cols, int64_t first,
                     int64_t last) {
  using V = Lanes<T>;
  const V one = all<V>(1);
  for (int64_t n = first; n < last; ++n) {
    const T *gate = static_cast<const T*>(gate_up) + n * 2 * cols, *up = gate + cols,
            *d = static_cast<const T*>(dy) + n * cols;
    T *dgate = static_cast<T*>(dgate_up) + n * 2 * cols, *dup = dgate + cols;
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      const V g = read(gate + j, ending), w = read(d + j, ending), u = read(up + j, ending);
      const Sigmoid<V> s = sigmoid(g);
      write(dgate + j, w * u * s.of * multiply_add(g, s.rest, one), ending);
      write(dup + j, w * g * s.of, ending);
    });
  }
}

/// dx = dy activation'(before)
template <class T, Activation activation>
void through_slope(const T* dy, const T* before, T* dx, int64_t count) {
  for_lanes<T>(count, [&](int64_t i, auto ending) {
    write(dx + i, read(dy + i, ending) * activation_derivative(activation, read(before + i, ending)), ending);
  });
}
template <class T>
void activation_backward(Activation a, const void* dy, const void* before, void* dx, int64_t first,
                         int64_t last) {
  const T *d = static_cast<const T*>(dy) + first, *x = static_cast<const T*>(before) + first;
  T* out = static_cast<T*>(dx) + first;
  if (a == Activation::relu) through_slope<T, Activation::relu>(d, x, out, last - first);
  if (a == Activation::gelu) through_slope<T, Activation::gelu>(d, x, out, last - first);
  if (a == Activation::silu) through_slope<T, Activation::silu>(d, x, out, last - first);
  if (a == Activation::gelu_exact) through_slope<T, Activation::gelu_exact>(d, x, out, last - first);
}

template <class T>
void scale(const void* x, double factor, void* y, int64_t first, int64_t last) {
  const T* px = static_cast<const T*>(x);
  T* py = static_cast<T*>(y);
  const Wide<T> f = static_cast<Wide<T>>(factor);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) put(py[i], widen(px[i]) * f);
}

void draw(const MaskRows& mask, std::uint32_t sample, std::uint64_t block, int64_t groups,
          std::uint32_t* words) {
  const PhiloxStream stream{{mask.key[0], mask.key[1]}, mask.step, sample};
  for (int64_t g = 0; g < groups; ++g)
    philox_words(stream, block + static_cast<std::uint64_t>(g * philox_group), words + g * 4 * philox_group);
}

constexpr int64_t strip = 256;                                ///< columns whose words are drawn at once
constexpr int64_t most_words = strip + 2 * 4 * philox_group;  ///< a strip may begin inside a block

/// Calls work(n, j, count, words) for strips of rows [first, last): element j + i of row n has words[i].
template <class Work>
void with_words(const MaskRows& mask, int64_t first, int64_t last, const Work& work) {
  alignas(64) std::uint32_t words[most_words];
  for (int64_t n = first; n < last; ++n) {
    const std::uint32_t sample = mask.sample + static_cast<std::uint32_t>(n / mask.rows);
    const std::uint64_t row =
        static_cast<std::uint64_t>((mask.first + n % mask.rows) * mask.whole_cols + mask.first_col);
    for (int64_t j = 0; j < mask.cols; j += strip) {
      const int64_t count = mask.cols - j < strip ? mask.cols - j : strip;
      const std::uint64_t element = row + static_cast<std::uint64_t>(j);
      const int64_t offset = static_cast<int64_t>(element % 4);
      draw(mask, sample, element / 4, (offset + count + 4 * philox_group - 1) / (4 * philox_group), words);
      work(n, j, count, words + offset);
    }
  }
}

/// y = x + mask (branch + bias) / (1 - p)
template <class T>
void residual(const void* x, const void* branch, const void* bias, const MaskRows& mask, void* y,
              int64_t first, int64_t last) {
  const T *px = static_cast<const T*>(x), *pb = static_cast<const T*>(branch),
          *offset = static_cast<const T*>(bias);
  T* py = static_cast<T*>(y);
  using A = Wide<T>;
  const A scale = static_cast<A>(mask.scale);
  const std::uint32_t threshold = mask.threshold;
  const int64_t cols = mask.cols;
  if (threshold == 0) {
    for (int64_t n = first; n < last; ++n) {
      const int64_t row = n * cols;
      if (offset != nullptr) {
#pragma GCC ivdep
        for (int64_t j = 0; j < cols; ++j)
          put(py[row + j], widen(px[row + j]) + (widen(pb[row + j]) + widen(offset[j])));
      } else {
#pragma GCC ivdep
        for (int64_t j = 0; j < cols; ++j) put(py[row + j], widen(px[row + j]) + widen(pb[row + j]));
      }
    }
    return;
  }
  with_words(mask, first, last, [&](int64_t n, int64_t begin, int64_t count, const std::uint32_t* words) {
    const int64_t at = n * cols + begin;
    if (offset != nullptr) {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) {
        const A kept = (widen(pb[at + j]) + widen(offset[begin + j])) * scale;
        put(py[at + j], widen(px[at + j]) + (words[j] >= threshold ? kept : A(0)));
      }
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) {
        const A kept = widen(pb[at + j]) * scale;
        put(py[at + j], widen(px[at + j]) + (words[j] >= threshold ? kept : A(0)));
      }
    }
  });
}

/// y = mask x / (1 - p)
template <class T>
void dropout(const void* x, const MaskRows& mask, void* y, int64_t first, int64_t last) {
  const T* px = static_cast<const T*>(x);
  T* py = static_cast<T*>(y);
  using A = Wide<T>;
  const A scale = static_cast<A>(mask.scale);
  const std::uint32_t threshold = mask.threshold;
  with_words(mask, first, last, [&](int64_t n, int64_t begin, int64_t count, const std::uint32_t* words) {
    const int64_t at = n * mask.cols + begin;
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) {
      const A kept = widen(px[at + j]) * scale;
      put(py[at + j], words[j] >= threshold ? kept : A(0));
    }
  });
}

}  // namespace

const ElementwiseKernels elementwise_kernels = {
    {add<double>, add<float>, add<bf16>},
    {multiply<double>, multiply<float>, multiply<bf16>},
    {accumulate<double>, accumulate<float>, accumulate<bf16>},
    {add_wide<double>, add_wide<float>, add_wide<bf16>},
    {{convert<double, double>, convert<double, float>, convert<double, bf16>},
     {convert<float, double>, convert<float, float>, convert<float, bf16>},
     {convert<bf16, double>, convert<bf16, float>, convert<bf16, bf16>}},
    {swiglu<double>, swiglu<float>, swiglu<bf16>},
    {swiglu_backward<double>, swiglu_backward<float>, swiglu_backward<bf16>},
    {activation_backward<float>, activation_backward<bf16>},
    {scale<double>, scale<float>, scale<bf16>},
    {residual<double>, residual<float>, residual<bf16>},
    {dropout<double>, dropout<float>, dropout<bf16>},
    draw,
};

}  // namespace mindpipe::MINDPIPE_ISA
