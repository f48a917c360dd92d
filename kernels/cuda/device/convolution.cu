#include "cuda/device/group.h"
#include "cuda/gpu_operations.h"
#include "operations/convolution.h"

namespace mindpipe::cuda {
namespace {

/// Rows of a sample that are no padding.
__device__ inline int64_t length_of(const LengthCall& of, int64_t sample) {
  if (of.lengths == nullptr) return of.rows;
  return of.lengths[sample] < of.rows ? of.lengths[sample] : of.rows;
}

/// A group of columns of one row: the sum over taps in order of the rows that they read. `back` turns the
/// taps round, reads every row and writes zeros where there is padding.
template <bool back, class T>
__global__ void depthwise_row_groups(const T* x, const T* w, TapCall call, T* y, bool wide) {
  constexpr int size = lanes<T>;
  const LengthCall& of = call.of;
  const int before = back ? call.taps - 1 - call.before : call.before;
  for_row_group<size>(of.samples * of.rows, of.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t sample = quotient(n, of.rows), row = n - sample * of.rows, length = length_of(of, sample);
    const int64_t limit = back ? of.rows : length;
    Group<Wide<T>, size> sum{};
    for (int t = 0; (!back || row < length) && t < call.taps; ++t) {
      const int64_t from = row - before + t;
      if (from < 0 || from >= limit) continue;
      const auto tap = load<size>(w + (back ? call.taps - 1 - t : t) * of.cols + j, ending);
      const auto in = load<size>(x + (sample * of.rows + from) * of.cols + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) sum.x[k] = multiply_add(tap.x[k], in.x[k], sum.x[k]);
    }
    store(y + n * of.cols + j, sum, ending);
  });
}

constexpr int least_of_chunk = 64, most_of_weight = 128, column_threads = 128;

inline int64_t weight_chunk_rows(int64_t rows) {
  const int64_t even = (rows + most_of_weight - 1) / most_of_weight;
  return even < least_of_chunk ? least_of_chunk : even;
}

/// sums[chunk, tap, column of the pass]: a thread adds the rows of a chunk in order, for one column and tap.
template <class T>
__global__ void __launch_bounds__(column_threads)
    weight_chunks(const T* dy, const T* x, TapCall call, Wide<T>* sums, int64_t first, int64_t count,
                  int64_t each) {
  const LengthCall& of = call.of;
  const int64_t i = thread_index(), chunk = blockIdx.y, t = blockIdx.z, all = of.samples * of.rows;
  if (i >= count) return;
  const int64_t last = (chunk + 1) * each < all ? (chunk + 1) * each : all;
  int64_t n = chunk * each, sample = quotient(n, of.rows), row = n - sample * of.rows,
          length = length_of(of, sample);
  Wide<T> sum = 0;
  for (; n < last; ++n) {
    const int64_t from = row - call.before + t;
    if (from >= 0 && from < length)
      sum = multiply_add(widen(dy[n * of.cols + first + i]), widen(x[(n - row + from) * of.cols + first + i]),
                         sum);
    if (++row < of.rows || n + 1 == last) continue;
    row = 0;
    length = length_of(of, ++sample);
  }
  sums[(chunk * call.taps + t) * count + i] = sum;
}

/// dw[tap, column] += its chunks, in order
template <class A>
__global__ void __launch_bounds__(column_threads)
    add_weight_chunks(const A* sums, A* dw, TapCall call, int64_t first, int64_t count, int64_t chunks) {
  const int64_t i = thread_index(), t = blockIdx.y;
  if (i >= count) return;
  A sum = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[(chunk * call.taps + t) * count + i];
  dw[t * call.of.cols + first + i] += sum;
}

/// The rows of the result are taps of rows: a group of columns of one of them.
template <class T>
__global__ void row_neighbour_groups(const T* x, TapCall call, T* y, bool wide) {
  constexpr int size = lanes<T>;
  const LengthCall& of = call.of;
  for_row_group<size>(
      of.samples * of.rows * call.taps, of.cols, wide, [&](int64_t m, int64_t j, auto ending) {
        const int64_t n = quotient(m, call.taps), t = m - n * call.taps, sample = quotient(n, of.rows),
                      from = n - sample * of.rows - call.before + t;
        Raw<T, size> numbers{};
        if (from >= 0 && from < length_of(of, sample))
          numbers = fetch<size>(x + (sample * of.rows + from) * of.cols + j, ending);
        store(y + m * of.cols + j, widened(numbers), ending);
      });
}

template <class T>
__global__ void neighbour_sum_groups(const T* dy, TapCall call, T* dx, bool wide) {
  constexpr int size = lanes<T>;
  const LengthCall& of = call.of;
  for_row_group<size>(of.samples * of.rows, of.cols, wide, [&](int64_t n, int64_t j, auto ending) {
    const int64_t sample = quotient(n, of.rows), i = n - sample * of.rows;
    Group<Wide<T>, size> sum{};
    for (int t = 0; i < length_of(of, sample) && t < call.taps; ++t) {
      const int64_t row = i + call.before - t;
      if (row < 0 || row >= of.rows) continue;
      const auto d = load<size>(dy + ((sample * of.rows + row) * call.taps + t) * of.cols + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) sum.x[k] += d.x[k];
    }
    store(dx + n * of.cols + j, sum, ending);
  });
}

/// p[t] = exp(w[t] - largest) / sum, over the taps of a column
template <class T>
__device__ inline void softmax_of_taps(const T* w, const SharedTaps& call, Wide<T>* p) {
  using A = Wide<T>;
  A highest = widen(w[0]), sum = 0;
  for (int t = 1; t < call.taps; ++t) {
    const A number = widen(w[t * call.columns]);
    highest = number > highest ? number : highest;
  }
  for (int t = 0; t < call.taps; ++t) sum += p[t] = exponential(widen(w[t * call.columns]) - highest);
  for (int t = 0; t < call.taps; ++t) p[t] /= sum;
}

/// A thread shares the taps of one column.
template <class T>
__global__ void share_columns(const T* w, SharedTaps call, T* y) {
  const int64_t c = thread_index();
  if (c >= call.columns) return;
  Wide<T> p[Reach::most];
  softmax_of_taps(w + c, call, p);
  for (int t = 0; t < call.taps; ++t)
    for (int64_t i = c; i < call.channels; i += call.columns) put(y[t * call.channels + i], p[t]);
}

template <class T>
__global__ void share_columns_backward(const Wide<T>* dy, const T* w, SharedTaps call, Wide<T>* dw) {
  using A = Wide<T>;
  const int64_t c = thread_index();
  if (c >= call.columns) return;
  A p[Reach::most], g[Reach::most], mean = 0;
  softmax_of_taps(w + c, call, p);
  for (int t = 0; t < call.taps; ++t) {
    g[t] = 0;
    for (int64_t i = c; i < call.channels; i += call.columns) g[t] += dy[t * call.channels + i];
    mean += p[t] * g[t];
  }
  for (int t = 0; t < call.taps; ++t) dw[t * call.columns + c] += p[t] * (g[t] - mean);
}

template <bool back>
void start_depthwise(const Tensor& x, const Tensor& w, const TapCall& call, const Tensor& y,
                     cudaStream_t stream) {
  with_number(dtype_index(x.dtype), [&]<class T>(T) {
    launch(stream, grid_of_row_groups(call.of.samples * call.of.rows, call.of.cols, lanes<T>),
           depthwise_row_groups<back, T>, x.data, w.data, call, y.data,
           aligned(x.data, w.data, y.data) && whole_rows<T>(call.of.cols));
  });
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const DepthwiseOperands& o) {
  start_depthwise<false>(o.x, o.w, o.checked(), o.y, stream());
}

void GpuOperations::run(const DepthwiseBackwardInputOperands& o) {
  start_depthwise<true>(o.dy, o.w, o.checked(), o.dx, stream());
}

void GpuOperations::run(const DepthwiseBackwardWeightOperands& o) {
  const TapCall call = o.checked();
  const int64_t rows = call.of.samples * call.of.rows, each = weight_chunk_rows(rows),
                chunks = blocks_for(rows, each);
  if (chunks == 0) return;
  with_number(dtype_index(o.dy.dtype), [&]<class T>(T) {
    using A = Wide<T>;
    const std::size_t of_column = static_cast<std::size_t>(chunks * call.taps) * sizeof(A);
    A* sums = static_cast<A*>(workspace(of_column * column_threads, "depthwise_backward_weight"));
    const int64_t fitting = static_cast<int64_t>(workspace_.size() / of_column);
    for (int64_t first = 0; first < call.of.cols; first += fitting) {
      const int64_t count = call.of.cols - first < fitting ? call.of.cols - first : fitting,
                    blocks = blocks_for(count, column_threads);
      launch(stream(), {blocks, column_threads, chunks, call.taps}, weight_chunks<T>, o.dy.data, o.x.data,
             call, sums, first, count, each);
      launch(stream(), {blocks, column_threads, call.taps}, add_weight_chunks<A>, sums, o.dw.data, call,
             first, count, chunks);
    }
  });
}

void GpuOperations::run(const RowNeighboursOperands& o) {
  const TapCall call = o.checked();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(o.x.rows() * call.taps, call.of.cols, lanes<T>),
           row_neighbour_groups<T>, o.x.data, call, o.y.data,
           aligned(o.x.data, o.y.data) && whole_rows<T>(call.of.cols));
  });
}

void GpuOperations::run(const RowNeighboursBackwardOperands& o) {
  const TapCall call = o.checked();
  with_number(dtype_index(o.dx.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(o.dx.rows(), call.of.cols, lanes<T>), neighbour_sum_groups<T>,
           o.dy.data, call, o.dx.data, aligned(o.dy.data, o.dx.data) && whole_rows<T>(call.of.cols));
  });
}

void GpuOperations::run(const ShareTapsOperands& o) {
  const SharedTaps call = o.checked();
  with_number(dtype_index(o.w.dtype), [&]<class T>(T) {
    launch(stream(), {blocks_for(call.columns, 64), 64}, share_columns<T>, o.w.data, call, o.y.data);
  });
}

void GpuOperations::run(const ShareTapsBackwardOperands& o) {
  const SharedTaps call = o.checked();
  with_number(dtype_index(o.w.dtype), [&]<class T>(T) {
    launch(stream(), {blocks_for(call.columns, 64), 64}, share_columns_backward<T>, o.dy.data, o.w.data, call,
           o.dw.data);
  });
}

}  // namespace mindpipe
