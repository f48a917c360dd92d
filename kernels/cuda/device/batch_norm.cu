#include "operations/batch_norm.h"

#include "cuda/device/group.h"
#include "cuda/gpu_operations.h"

namespace mindpipe::cuda {
namespace {

/// What a norm reads of each column, and how many rows and columns there are.
template <class T>
struct NormColumns {
  const Wide<T>* statistics;
  const T *gain, *offset;
  int64_t rows, cols;
  bool relu;
};

/// One column of a norm.
template <class A>
struct Column {
  A mean, scale, gain, offset;
  bool relu;
  __device__ A normed(A x) const { return (x - mean) * scale; }
  __device__ A out(A h) const { return multiply_add(h, gain, offset); }
  /// The gradient behind the activation.
  __device__ A through(A dy, A h) const { return relu && !(out(h) > 0) ? A(0) : dy; }
};
template <class T>
__device__ inline Column<Wide<T>> column_of(const NormColumns<T>& norm, int64_t j) {
  return {norm.statistics[j], norm.statistics[norm.cols + j], widen(norm.gain[j]), widen(norm.offset[j]),
          norm.relu};
}

__device__ inline int64_t rows_of_part(int64_t part, int64_t rows) {
  const int64_t left = rows - part * pixel_chunk;
  return left < pixel_chunk ? left : pixel_chunk;
}

/// Calls body(part, column, its rows) in a grid of a thread for each column of each part.
template <class Body>
__device__ inline void for_column_of_part(int64_t rows, int64_t cols, const Body& body) {
  const int64_t part = quotient(thread_index(), cols);
  if (part * pixel_chunk < rows) body(part, thread_index() - part * cols, rows_of_part(part, rows));
}

template <class T>
__global__ void moment_parts(const T* x, Wide<T>* parts, int64_t rows, int64_t cols) {
  using A = Wide<T>;
  for_column_of_part(rows, cols, [&](int64_t part, int64_t j, int64_t here) {
    const T* from = x + part * pixel_chunk * cols + j;
    A mean = 0, squares = 0;
    for (int64_t i = 0; i < here; ++i) mean = mean + widen(from[i * cols]);
    mean = mean / static_cast<A>(here);
    for (int64_t i = 0; i < here; ++i) {
      const A d = widen(from[i * cols]) - mean;
      squares = multiply_add(d, d, squares);
    }
    parts[part * 2 * cols + j] = mean;
    parts[(part * 2 + 1) * cols + j] = squares;
  });
}

template <class A>
__global__ void joined_columns(const A* parts, int64_t rows, double epsilon, A* statistics, int64_t cols) {
  const int64_t j = thread_index();
  if (j >= cols) return;
  double mean = 0, squares = 0;
  for (int64_t part = 0; part * pixel_chunk < rows; ++part) {
    const double before = static_cast<double>(part * pixel_chunk),
                 here = static_cast<double>(rows_of_part(part, rows)), share = here / (before + here),
                 d = static_cast<double>(parts[part * 2 * cols + j]) - mean;
    mean += d * share;
    squares += static_cast<double>(parts[(part * 2 + 1) * cols + j]) + d * d * before * share;
  }
  statistics[j] = static_cast<A>(mean);
  statistics[cols + j] = static_cast<A>(1 / sqrt(squares / static_cast<double>(rows) + epsilon));
  statistics[2 * cols + j] = static_cast<A>(rows == 1 ? squares : squares / static_cast<double>(rows - 1));
}

template <class T>
__global__ void batch_norm_groups(NormColumns<T> norm, const T* x, T* y, bool wide) {
  constexpr int size = lanes<T>;
  using A = Wide<T>;
  for_row_group<size>(norm.rows, norm.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto a = load<size>(x + n * norm.cols + j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      if (!there(ending, k)) continue;
      const Column<A> column = column_of(norm, j + k);
      const A out = column.out(column.normed(a.x[k]));
      a.x[k] = norm.relu && out < 0 ? A(0) : out;
    }
    store(y + n * norm.cols + j, a, ending);
  });
}

template <class T>
__global__ void batch_norm_sum_parts(NormColumns<T> norm, const T* dy, const T* x, Wide<T>* parts) {
  using A = Wide<T>;
  const int64_t cols = norm.cols;
  for_column_of_part(norm.rows, cols, [&](int64_t part, int64_t j, int64_t here) {
    const Column<A> column = column_of(norm, j);
    const int64_t begin = part * pixel_chunk * cols + j;
    A plain = 0, crossed = 0;
    for (int64_t i = 0; i < here; ++i) {
      const A h = column.normed(widen(x[begin + i * cols])),
              d = column.through(widen(dy[begin + i * cols]), h);
      plain = plain + d;
      crossed = multiply_add(d, h, crossed);
    }
    parts[part * 2 * cols + j] = plain;
    parts[(part * 2 + 1) * cols + j] = crossed;
  });
}

template <class T>
__global__ void batch_norm_gradient_groups(NormColumns<T> norm, const T* dy, const T* x, const Wide<T>* sums,
                                           const T* residual, T* dx, bool wide) {
  constexpr int size = lanes<T>;
  using A = Wide<T>;
  const int64_t cols = norm.cols;
  const A rows = static_cast<A>(norm.rows);
  for_row_group<size>(norm.rows, cols, wide, [&](int64_t n, int64_t j, auto ending) {
    auto d = load<size>(dy + n * cols + j, ending);
    const auto a = load<size>(x + n * cols + j, ending);
    Group<A, size> past{};
    if (residual != nullptr) past = load<size>(residual + n * cols + j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) {
      if (!there(ending, k)) continue;
      const Column<A> column = column_of(norm, j + k);
      const A h = column.normed(a.x[k]);
      const A through = (column.through(d.x[k], h) - sums[j + k] / rows - h * (sums[cols + j + k] / rows)) *
                        (column.gain * column.scale);
      d.x[k] = residual == nullptr ? through : past.x[k] + through;
    }
    store(dx + n * cols + j, d, ending);
  });
}

template <class T>
__global__ void running_elements(Wide<T> share, Wide<T> factor, const double* decision, const Wide<T>* sum,
                                 Wide<T>* master, T* value, int64_t count) {
  const int64_t i = thread_index();
  if (i >= count || decision[Decision::skipped] != 0) return;
  const Wide<T> moved = master[i] + share * (factor * sum[i] - master[i]);
  master[i] = moved;
  if (value != nullptr) put(value[i], moved);
}

template <class T, class Operands>
NormColumns<T> norm_columns(const Operands& o) {
  return {static_cast<const Wide<T>*>(o.statistics.data),
          static_cast<const T*>(o.gain.data),
          static_cast<const T*>(o.offset.data),
          o.x.rows(),
          o.x.cols(),
          o.relu};
}
/// A thread for each column of each part.
Grid grid_of_parts(int64_t rows, int64_t cols) {
  return {blocks_for(pixel_chunks(rows) * cols, group_threads), group_threads};
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const BatchMomentsOperands& o) {
  const std::int64_t rows = o.x.rows(), cols = o.x.cols();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_parts(rows, cols), moment_parts<T>, o.x.data, o.parts.data, rows, cols);
  });
}

void GpuOperations::run(const BatchStatisticsOperands& o) {
  const std::int64_t cols = o.statistics.count() / 3;
  const auto with = [&](auto kernel) {
    launch(stream(), Grid{blocks_for(cols, group_threads), group_threads}, kernel, o.parts.data, o.rows,
           o.epsilon, o.statistics.data, cols);
  };
  if (o.statistics.dtype == DType::f64) with(joined_columns<double>);
  else with(joined_columns<float>);
}

void GpuOperations::run(const BatchNormOperands& o) {
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(o.x.rows(), o.x.cols(), lanes<T>), batch_norm_groups<T>,
           norm_columns<T>(o), o.x.data, o.y.data, aligned(o.x.data, o.y.data) && whole_rows<T>(o.x.cols()));
  });
}

void GpuOperations::run(const BatchNormBackwardSumsOperands& o) {
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_parts(o.x.rows(), o.x.cols()), batch_norm_sum_parts<T>, norm_columns<T>(o),
           o.dy.data, o.x.data, o.parts.data);
  });
}

void GpuOperations::run(const BatchNormBackwardInputOperands& o) {
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(o.x.rows(), o.x.cols(), lanes<T>), batch_norm_gradient_groups<T>,
           norm_columns<T>(o), o.dy.data, o.x.data, o.sums.data, o.residual.data, o.dx.data,
           aligned(o.dy.data, o.x.data, o.residual.data, o.dx.data) && whole_rows<T>(o.x.cols()));
  });
}

void GpuOperations::run(const RunningMeanOperands& o) {
  const DType value = o.value ? o.value.dtype : o.master.dtype;
  with_number(dtype_index(value), [&]<class T>(T) {
    launch(stream(), Grid{blocks_for(o.master.count(), group_threads), group_threads}, running_elements<T>,
           static_cast<Wide<T>>(o.share), static_cast<Wide<T>>(o.factor), o.decision.data, o.sum.data,
           o.master.data, o.value.data, o.master.count());
  });
}

}  // namespace mindpipe
