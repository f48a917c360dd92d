#include "cuda/device/elementwise_kernels.h"

#include "cuda/device/residual.h"

namespace mindpipe::cuda {
namespace {

template <class T>
__global__ void add_groups(const T* a, const T* b, T* sum, int64_t count, bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    auto total = load<lanes<T>>(a + i, ending);
    const auto other = load<lanes<T>>(b + i, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) total.x[k] += other.x[k];
    store(sum + i, total, ending);
  });
}

template <class T>
__global__ void maximum_groups(const T* a, const T* b, T* largest, int64_t count, bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    auto one = load<lanes<T>>(a + i, ending);
    const auto other = load<lanes<T>>(b + i, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k)
      one.x[k] = one.x[k] > other.x[k] || one.x[k] != one.x[k] ? one.x[k] : other.x[k];
    store(largest + i, one, ending);
  });
}

template <class T>
__global__ void accumulate_groups(const T* part, Wide<T>* total, int64_t count, bool wide) {
  constexpr int size = lanes<Wide<T>>;
  for_group<size>(count, wide, [&](int64_t i, auto ending) {
    auto sum = load<size>(total + i, ending);
    const auto more = load<size>(part + i, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) sum.x[k] += more.x[k];
    store(total + i, sum, ending);
  });
}

template <class From, class To>
constexpr int convert_size = lanes<From> > lanes<To> ? lanes<From> : lanes<To>;

template <class From, class To>
__global__ void convert_groups(const From* x, To* y, int64_t count, bool wide) {
  constexpr int size = convert_size<From, To>;
  for_group<size>(count, wide,
                  [&](int64_t i, auto ending) { store(y + i, load<size>(x + i, ending), ending); });
}

template <class Bits>
__global__ void fill_groups(Bits bits, Bits* x, int64_t count, bool wide) {
  alignas(16) Bits raw[lanes<Bits>];
#pragma unroll
  for (int k = 0; k < lanes<Bits>; ++k) raw[k] = bits;
  for_group<lanes<Bits>>(count, wide, [&](int64_t i, auto ending) { move<lanes<Bits>>(raw, x + i, ending); });
}

/// y = g / (1 + exp(-g)) u
template <class T>
__global__ void swiglu_groups(const T* gate_up, T* y, int64_t rows, int64_t cols, bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto gate = load<lanes<T>>(gate_up + 2 * n * cols + j, ending);
    const auto up = load<lanes<T>>(gate_up + (2 * n + 1) * cols + j, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) gate.x[k] = gate.x[k] / (A(1) + exponential(-gate.x[k])) * up.x[k];
    store(y + n * cols + j, gate, ending);
  });
}

/// s = 1 / (1 + exp(-g)); dg = dy u s (1 + g (1 - s)), du = dy g s
template <class T>
__global__ void swiglu_backward_groups(const T* dy, const T* gate_up, T* dgate_up, int64_t rows, int64_t cols,
                                       bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t low = 2 * n * cols + j, high = low + cols;
    const auto d = load<lanes<T>>(dy + n * cols + j, ending);
    auto gate = load<lanes<T>>(gate_up + low, ending);
    auto up = load<lanes<T>>(gate_up + high, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) {
      const A g = gate.x[k], u = up.x[k], s = A(1) / (A(1) + exponential(-g));
      gate.x[k] = d.x[k] * u * s * multiply_add(g, A(1) - s, A(1));
      up.x[k] = d.x[k] * g * s;
    }
    store(dgate_up + low, gate, ending);
    store(dgate_up + high, up, ending);
  });
}

template <class T>
__global__ void residual_groups(Residual<T> residual, int64_t rows, bool wide) {
  for_row_group<lanes<T>>(rows, residual.mask.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    residual.sum_at(residual.template fetch_at<lanes<T>>(n, j, ending), n, j, ending);
  });
}

/// y = mask x / (1 - p)
template <class T>
__global__ void dropout_groups(const T* x, MaskRows mask, T* y, int64_t rows, bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, mask.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto in = load<lanes<T>>(x + n * mask.cols + j, ending);
    const Kept<lanes<T>> mine = kept<lanes<T>>(mask, n, j);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) in.x[k] = mine.keep[k] ? in.x[k] * static_cast<A>(mask.scale) : A(0);
    store(y + n * mask.cols + j, in, ending);
  });
}

}  // namespace

void add(int type, const void* a, const void* b, void* sum, int64_t count, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_groups(count, lanes<T>), add_groups<T>, a, b, sum, count, aligned(a, b, sum));
  });
}

void maximum(int type, const void* a, const void* b, void* largest, int64_t count, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_groups(count, lanes<T>), maximum_groups<T>, a, b, largest, count,
           aligned(a, b, largest));
  });
}

void accumulate(int type, const void* part, void* total, int64_t count, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_groups(count, lanes<Wide<T>>), accumulate_groups<T>, part, total, count,
           aligned(part, total));
  });
}

void convert(int from, int to, const void* x, void* y, int64_t count, cudaStream_t stream) {
  with_number(from, [&]<class From>(From) {
    with_number(to, [&]<class To>(To) {
      launch(stream, grid_of_groups(count, convert_size<From, To>), convert_groups<From, To>, x, y, count,
             aligned(x, y));
    });
  });
}

void fill(int size, std::uint64_t bits, void* x, int64_t count, cudaStream_t stream) {
  const auto with = [&]<class Bits>(Bits pattern) {
    launch(stream, grid_of_groups(count, lanes<Bits>), fill_groups<Bits>, pattern, x, count, aligned(x));
  };
  if (size == 1) with(static_cast<std::uint8_t>(bits));
  else if (size == 2) with(static_cast<std::uint16_t>(bits));
  else if (size == 4) with(static_cast<std::uint32_t>(bits));
  else with(bits);
}

void swiglu(int type, const void* gate_up, void* y, int64_t rows, int64_t cols, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_row_groups(rows, cols, lanes<T>), swiglu_groups<T>, gate_up, y, rows, cols,
           aligned(gate_up, y) && whole_rows<T>(cols));
  });
}

void swiglu_backward(int type, const void* dy, const void* gate_up, void* dgate_up, int64_t rows,
                     int64_t cols, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_row_groups(rows, cols, lanes<T>), swiglu_backward_groups<T>, dy, gate_up, dgate_up,
           rows, cols, aligned(dy, gate_up, dgate_up) && whole_rows<T>(cols));
  });
}

void residual(int type, const void* x, const void* branch, const void* bias, const MaskRows& mask, void* y,
              int64_t rows, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    const Residual<T> sum{static_cast<const T*>(x), static_cast<const T*>(branch),
                          static_cast<const T*>(bias), mask, static_cast<T*>(y)};
    launch(stream, grid_of_row_groups(rows, mask.cols, lanes<T>), residual_groups<T>, sum, rows,
           aligned(x, branch, bias, y) && whole_rows<T>(mask.cols));
  });
}

void dropout(int type, const void* x, const MaskRows& mask, void* y, int64_t rows, cudaStream_t stream) {
  with_number(type, [&]<class T>(T) {
    launch(stream, grid_of_row_groups(rows, mask.cols, lanes<T>), dropout_groups<T>, x, mask, y, rows,
           aligned(x, y) && whole_rows<T>(mask.cols));
  });
}

}  // namespace mindpipe::cuda
