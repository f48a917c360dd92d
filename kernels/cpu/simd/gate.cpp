#include "cpu/simd/gate_kernels.h"

#include "cpu/simd/activation.h"
#include "cpu/simd/rows.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

/// Asks for the same columns of the row after this one.
template <class T>
MINDPIPE_INLINE void ask_for_next(const T* from, int64_t row) {
  __builtin_prefetch(from + row);
}

/// y = a / (1 + exp(-b))
template <class T>
void gate(const void* both, void* y, int64_t cols, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) {
    const T *a = static_cast<const T*>(both) + n * 2 * cols, *b = a + cols;
    T* out = static_cast<T*>(y) + n * cols;
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      ask_for_next(a + j, 2 * cols);
      ask_for_next(b + j, 2 * cols);
      ask_for_next(out + j, cols);
      write(out + j, read(a + j, ending) * sigmoid(read(b + j, ending)).of, ending);
    });
  }
}

/// s = 1 / (1 + exp(-b)); da = dy s, db = dy a s (1 - s)
template <class T>
void gate_backward(const void* dy, const void* both, void* dboth, int64_t cols, int64_t first, int64_t last) {
  using V = Lanes<T>;
  for (int64_t n = first; n < last; ++n) {
    const T *a = static_cast<const T*>(both) + n * 2 * cols, *b = a + cols,
            *d = static_cast<const T*>(dy) + n * cols;
    T *da = static_cast<T*>(dboth) + n * 2 * cols, *db = da + cols;
    for_lanes<T>(cols, [&](int64_t j, auto ending) {
      ask_for_next(a + j, 2 * cols);
      ask_for_next(b + j, 2 * cols);
      ask_for_next(d + j, cols);
      ask_for_next(da + j, 2 * cols);
      ask_for_next(db + j, 2 * cols);
      const Sigmoid<V> s = sigmoid(read(b + j, ending));
      const V open = read(d + j, ending) * s.of, value = read(a + j, ending);
      write(da + j, open, ending);
      write(db + j, open * value * s.rest, ending);
    });
  }
}

template <class T, Activation which>
void activate_all(const T* x, T* y, int64_t count) {
  for_lanes<T>(count,
               [&](int64_t i, auto ending) { write(y + i, activate(which, read(x + i, ending)), ending); });
}
template <class T>
void activation(Activation which, const void* x, void* y, int64_t first, int64_t last) {
  const T* in = static_cast<const T*>(x) + first;
  T* out = static_cast<T*>(y) + first;
  if (which == Activation::relu) activate_all<T, Activation::relu>(in, out, last - first);
  if (which == Activation::gelu) activate_all<T, Activation::gelu>(in, out, last - first);
  if (which == Activation::silu) activate_all<T, Activation::silu>(in, out, last - first);
  if (which == Activation::gelu_exact) activate_all<T, Activation::gelu_exact>(in, out, last - first);
}

}  // namespace

const GateKernels gate_kernels = {
    {gate<double>, gate<float>, gate<bf16>},
    {gate_backward<double>, gate_backward<float>, gate_backward<bf16>},
    {activation<float>, activation<bf16>},
};

}  // namespace mindpipe::MINDPIPE_ISA
