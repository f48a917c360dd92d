#include "cuda/device/activation.h"
#include "cuda/device/group.h"
#include "cuda/gpu_operations.h"
#include "operations/gates.h"

namespace mindpipe::cuda {
namespace {

/// y = a / (1 + exp(-b))
template <class T>
__global__ void gate_groups(const T* both, T* y, int64_t rows, int64_t cols, bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto a = load<lanes<T>>(both + 2 * n * cols + j, ending);
    const auto b = load<lanes<T>>(both + (2 * n + 1) * cols + j, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) a.x[k] = a.x[k] / (A(1) + exponential(-b.x[k]));
    store(y + n * cols + j, a, ending);
  });
}

/// s = 1 / (1 + exp(-b)); da = dy s, db = dy a s (1 - s)
template <class T>
__global__ void gate_backward_groups(const T* dy, const T* both, T* dboth, int64_t rows, int64_t cols,
                                     bool wide) {
  using A = Wide<T>;
  for_row_group<lanes<T>>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t low = 2 * n * cols + j, high = low + cols;
    const auto d = load<lanes<T>>(dy + n * cols + j, ending);
    auto a = load<lanes<T>>(both + low, ending);
    auto b = load<lanes<T>>(both + high, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) {
      const A s = A(1) / (A(1) + exponential(-b.x[k])), open = d.x[k] * s;
      b.x[k] = open * a.x[k] * (A(1) - s);
      a.x[k] = open;
    }
    store(dboth + low, a, ending);
    store(dboth + high, b, ending);
  });
}

template <class T>
__global__ void activation_groups(Activation activation, const T* x, T* y, int64_t count, bool wide) {
  for_group<lanes<T>>(count, wide, [&](int64_t i, auto ending) {
    auto numbers = load<lanes<T>>(x + i, ending);
#pragma unroll
    for (int k = 0; k < lanes<T>; ++k) numbers.x[k] = activated(activation, numbers.x[k]);
    store(y + i, numbers, ending);
  });
}

/// y = x, and zeros from a sample's length on
template <class T>
__global__ void clear_groups(const T* x, LengthCall call, T* y, bool wide) {
  for_row_group<lanes<T>>(call.samples * call.rows, call.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t sample = quotient(n, call.rows);
    Raw<T, lanes<T>> numbers{};
    if (n - sample * call.rows < call.lengths[sample])
      numbers = fetch<lanes<T>>(x + n * call.cols + j, ending);
    store(y + n * call.cols + j, widened(numbers), ending);
  });
}

/// y = (zeros | x | zeros) + sum; `wide`: no group has columns of x and others
template <class T>
__global__ void pad_groups(const T* x, int64_t first, int64_t narrow, const T* sum, T* y, int64_t rows,
                           int64_t cols, bool wide) {
  constexpr int size = lanes<T>;
  for_row_group<size>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    Group<Wide<T>, size> numbers{};
    if (sum != nullptr) numbers = load<size>(sum + n * cols + j, ending);
    const int64_t at = j - first;  // of x's columns
    if (wide && at >= 0 && at < narrow) {
      const auto more = load<size>(x + n * narrow + at, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) numbers.x[k] = sum != nullptr ? numbers.x[k] + more.x[k] : more.x[k];
    } else if (!wide && at + size > 0 && at < narrow) {
#pragma unroll
      for (int k = 0; k < size; ++k)
        if (there(ending, k) && at + k >= 0 && at + k < narrow) {
          const Wide<T> more = widen(x[n * narrow + at + k]);
          numbers.x[k] = sum != nullptr ? numbers.x[k] + more : more;
        }
    }
    store(y + n * cols + j, numbers, ending);
  });
}

template <class T>
__global__ void cut_groups(const T* x, int64_t first, int64_t whole, T* y, int64_t rows, int64_t cols,
                           bool wide) {
  for_row_group<lanes<T>>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    store(y + n * cols + j, load<lanes<T>>(x + n * whole + first + j, ending), ending);
  });
}

/// y = x (factor | ones); `wide`: no group has columns with a factor and others
template <class T>
__global__ void multiply_groups(const T* x, const T* factor, int64_t narrow, T* y, int64_t rows, int64_t cols,
                                bool wide) {
  constexpr int size = lanes<T>;
  for_row_group<size>(rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto numbers = load<size>(x + n * cols + j, ending);
    if (wide && j < narrow) {
      const auto times = load<size>(factor + n * narrow + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) numbers.x[k] *= times.x[k];
    } else if (j < narrow) {
#pragma unroll
      for (int k = 0; k < size; ++k)
        if (there(ending, k) && j + k < narrow) numbers.x[k] *= widen(factor[n * narrow + j + k]);
    }
    store(y + n * cols + j, numbers, ending);
  });
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const GateOperands& o) {
  const int64_t rows = o.y.rows(), cols = o.y.cols();
  with_number(dtype_index(o.y.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(rows, cols, lanes<T>), gate_groups<T>, o.both.data, o.y.data, rows,
           cols, aligned(o.both.data, o.y.data) && whole_rows<T>(cols));
  });
}

void GpuOperations::run(const GateBackwardOperands& o) {
  const int64_t rows = o.dy.rows(), cols = o.dy.cols();
  with_number(dtype_index(o.dy.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(rows, cols, lanes<T>), gate_backward_groups<T>, o.dy.data,
           o.both.data, o.dboth.data, rows, cols,
           aligned(o.dy.data, o.both.data, o.dboth.data) && whole_rows<T>(cols));
  });
}

void GpuOperations::run(const ActivationOperands& o) {
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_groups(o.x.count(), lanes<T>), activation_groups<T>, o.activation, o.x.data,
           o.y.data, o.x.count(), aligned(o.x.data, o.y.data));
  });
}

void GpuOperations::run(const ClearPaddingOperands& o) {
  const LengthCall call = o.checked();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(o.x.rows(), call.cols, lanes<T>), clear_groups<T>, o.x.data, call,
           o.y.data, aligned(o.x.data, o.y.data) && whole_rows<T>(call.cols));
  });
}

void GpuOperations::run(const PadColumnsOperands& o) {
  const int64_t rows = o.y.rows(), cols = o.y.cols(), narrow = o.x.cols();
  with_number(dtype_index(o.y.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(rows, cols, lanes<T>), pad_groups<T>, o.x.data, o.first, narrow,
           o.sum.data, o.y.data, rows, cols,
           aligned(o.x.data, o.sum.data, o.y.data) && whole_rows<T>(cols) && whole_rows<T>(narrow) &&
               whole_rows<T>(o.first));
  });
}

void GpuOperations::run(const CutColumnsOperands& o) {
  const int64_t rows = o.y.rows(), cols = o.y.cols(), whole = o.x.cols();
  with_number(dtype_index(o.y.dtype), [&]<class T>(T) {
    launch(
        stream(), grid_of_row_groups(rows, cols, lanes<T>), cut_groups<T>, o.x.data, o.first, whole, o.y.data,
        rows, cols,
        aligned(o.x.data, o.y.data) && whole_rows<T>(cols) && whole_rows<T>(whole) && whole_rows<T>(o.first));
  });
}

void GpuOperations::run(const MultiplyColumnsOperands& o) {
  const int64_t rows = o.x.rows(), cols = o.x.cols(), narrow = o.factor.cols();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(rows, cols, lanes<T>), multiply_groups<T>, o.x.data, o.factor.data,
           narrow, o.y.data, rows, cols,
           aligned(o.x.data, o.factor.data, o.y.data) && whole_rows<T>(cols) && whole_rows<T>(narrow));
  });
}

}  // namespace mindpipe
