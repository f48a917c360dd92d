#include "operations/pixels.h"

#include "cuda/device/group.h"
#include "cuda/gpu_operations.h"

namespace mindpipe::cuda {
namespace {

/// Which row and column of a picture, and of which sample, one of all pixels or windows is.
struct Place {
  int64_t sample;
  int row, column;
};
__device__ inline Place place_of(int64_t n, int64_t of_sample, int across) {
  const int64_t sample = quotient(n, of_sample);
  const int rest = static_cast<int>(n - sample * of_sample), row = rest / across;
  return {sample, row, rest - row * across};
}

/// Calls body(tap, pixel) for the taps of window number n that are there, in order.
template <class Body>
__device__ inline void for_taps_under(const PixelWindow& w, int64_t n, const Body& body) {
  const Place at = place_of(n, w.windows(), w.across());
  for (int i = 0; i < w.side; ++i) {
    const int row = w.under(at.row, i);
    if (row < 0 || row >= w.height) continue;
    for (int j = 0; j < w.side; ++j) {
      const int column = w.under(at.column, j);
      if (column >= 0 && column < w.width)
        body(i * w.side + j, at.sample * w.pixels() + static_cast<int64_t>(row) * w.width + column);
    }
  }
}
/// Calls body(tap, window, its row, its column) for the windows that pixel number n is under, by tap.
template <class Body>
__device__ inline void for_taps_over(const PixelWindow& w, int64_t n, const Body& body) {
  const Place at = place_of(n, w.pixels(), w.width);
  for (int i = 0; i < w.side; ++i) {
    const int row = w.over(at.row, i, w.down());
    if (row < 0) continue;
    for (int j = 0; j < w.side; ++j) {
      const int column = w.over(at.column, j, w.across());
      if (column >= 0)
        body(i * w.side + j, at.sample * w.windows() + static_cast<int64_t>(row) * w.across() + column, row,
             column);
    }
  }
}

/// A thread has a group of channels of one tap of one window; bits are copied, whatever they mean.
template <class Bits>
__global__ void neighbour_groups(PixelCall call, const Bits* x, Bits* y, bool wide) {
  constexpr int size = lanes<Bits>;
  const PixelWindow& w = call.window;
  const int64_t taps = w.taps();
  for_row_group<size>(
      call.samples * w.windows() * taps, call.channels, wide, [&](int64_t n, int64_t j, auto ending) {
        const int64_t window = quotient(n, taps);
        const int tap = static_cast<int>(n - window * taps), i = tap / w.side;
        const Place at = place_of(window, w.windows(), w.across());
        const int row = w.under(at.row, i), column = w.under(at.column, tap - i * w.side);
        alignas(16) Bits raw[size] = {};
        if (row >= 0 && row < w.height && column >= 0 && column < w.width)
          move<size>(
              x + (at.sample * w.pixels() + static_cast<int64_t>(row) * w.width + column) * call.channels + j,
              raw, ending);
        write<size>(raw, y + n * call.channels + j, ending);
      });
}

template <class T>
__global__ void neighbour_gradient_groups(PixelCall call, const T* dy, T* dx, bool wide) {
  constexpr int size = lanes<T>;
  const PixelWindow& w = call.window;
  for_row_group<size>(call.samples * w.pixels(), call.channels, wide, [&](int64_t n, int64_t j, auto ending) {
    Group<Wide<T>, size> sum{};
    for_taps_over(w, n, [&](int tap, int64_t window, int, int) {
      const auto d = load<size>(dy + (window * w.taps() + tap) * call.channels + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) sum.x[k] = sum.x[k] + d.x[k];
    });
    store(dx + n * call.channels + j, sum, ending);
  });
}

/// Sums of what lies under each window, or of the windows over each pixel, weighed by tap.
template <bool back, class T>
__global__ void depthwise_groups(PixelCall call, const T* x, const T* weights, T* y, bool wide) {
  constexpr int size = lanes<T>;
  const PixelWindow& w = call.window;
  for_row_group<size>(call.samples * (back ? w.pixels() : w.windows()), call.channels, wide,
                      [&](int64_t n, int64_t j, auto ending) {
                        Group<Wide<T>, size> sum{};
                        const auto add = [&](int tap, int64_t place) {
                          const auto a = load<size>(x + place * call.channels + j, ending),
                                     b = load<size>(weights + tap * call.channels + j, ending);
#pragma unroll
                          for (int k = 0; k < size; ++k) sum.x[k] = multiply_add(a.x[k], b.x[k], sum.x[k]);
                        };
                        if constexpr (back)
                          for_taps_over(w, n, [&](int tap, int64_t window, int, int) { add(tap, window); });
                        else for_taps_under(w, n, add);
                        store(y + n * call.channels + j, sum, ending);
                      });
}

/// A thread has a channel of one tap and walks through the windows of one part.
template <class T>
__global__ void depthwise_weight_parts(PixelCall call, const T* dy, const T* x, Wide<T>* parts) {
  const PixelWindow& w = call.window;
  const int64_t taps = w.taps(), windows = call.samples * w.windows(),
                row_of_parts = quotient(thread_index(), call.channels),
                j = thread_index() - row_of_parts * call.channels, part = quotient(row_of_parts, taps);
  const int tap = static_cast<int>(row_of_parts - part * taps), i = tap / w.side;
  const int64_t begin = part * pixel_chunk,
                end = begin + pixel_chunk < windows ? begin + pixel_chunk : windows;
  if (begin >= windows) return;
  Wide<T> sum = 0;
  for (int64_t n = begin; n < end; ++n) {
    const Place at = place_of(n, w.windows(), w.across());
    const int row = w.under(at.row, i), column = w.under(at.column, tap - i * w.side);
    if (row < 0 || row >= w.height || column < 0 || column >= w.width) continue;
    const int64_t pixel = at.sample * w.pixels() + static_cast<int64_t>(row) * w.width + column;
    sum = multiply_add(widen(x[pixel * call.channels + j]), widen(dy[n * call.channels + j]), sum);
  }
  parts[row_of_parts * call.channels + j] = sum;
}

template <class T>
__global__ void mean_groups(PixelCall call, const T* x, T* y, bool wide) {
  constexpr int size = lanes<T>;
  using A = Wide<T>;
  const PixelWindow& w = call.window;
  for_row_group<size>(call.samples * w.windows(), call.channels, wide,
                      [&](int64_t n, int64_t j, auto ending) {
                        Group<A, size> sum{};
                        int count = 0;
                        for_taps_under(w, n, [&](int, int64_t pixel) {
                          const auto a = load<size>(x + pixel * call.channels + j, ending);
                          ++count;
#pragma unroll
                          for (int k = 0; k < size; ++k) sum.x[k] = sum.x[k] + a.x[k];
                        });
                        const A share = A(1) / static_cast<A>(count);
#pragma unroll
                        for (int k = 0; k < size; ++k) sum.x[k] = sum.x[k] * share;
                        store(y + n * call.channels + j, sum, ending);
                      });
}
template <class T>
__global__ void mean_gradient_groups(PixelCall call, const T* dy, T* dx, bool wide) {
  constexpr int size = lanes<T>;
  using A = Wide<T>;
  const PixelWindow& w = call.window;
  for_row_group<size>(call.samples * w.pixels(), call.channels, wide, [&](int64_t n, int64_t j, auto ending) {
    Group<A, size> sum{};
    for_taps_over(w, n, [&](int, int64_t window, int row, int column) {
      const auto d = load<size>(dy + window * call.channels + j, ending);
      const A share = A(1) / static_cast<A>(w.present(row, w.height) * w.present(column, w.width));
#pragma unroll
      for (int k = 0; k < size; ++k) sum.x[k] = multiply_add(d.x[k], share, sum.x[k]);
    });
    store(dx + n * call.channels + j, sum, ending);
  });
}

/// What the largest of several numbers is found by: a NaN is larger than all, the last of several.
template <class A>
__device__ inline bool is_larger(A a, A best) {
  return a > best || a != a;
}
template <class T>
__global__ void largest_groups(PixelCall call, const T* x, T* y, std::uint8_t* chosen, bool wide) {
  constexpr int size = lanes<T>;
  const PixelWindow& w = call.window;
  for_row_group<size>(call.samples * w.windows(), call.channels, wide,
                      [&](int64_t n, int64_t j, auto ending) {
                        Group<Wide<T>, size> best{};
                        int which[size] = {};
                        bool found = false;
                        for_taps_under(w, n, [&](int tap, int64_t pixel) {
                          const auto a = load<size>(x + pixel * call.channels + j, ending);
#pragma unroll
                          for (int k = 0; k < size; ++k)
                            if (!found || is_larger(a.x[k], best.x[k])) {
                              best.x[k] = a.x[k];
                              which[k] = tap;
                            }
                          found = true;
                        });
                        store(y + n * call.channels + j, best, ending);
#pragma unroll
                        for (int k = 0; k < size; ++k)
                          if (there(ending, k))
                            chosen[n * call.channels + j + k] = static_cast<std::uint8_t>(which[k]);
                      });
}
template <class T>
__global__ void largest_gradient_groups(PixelCall call, const T* dy, const std::uint8_t* chosen, T* dx,
                                        bool wide) {
  constexpr int size = lanes<T>;
  const PixelWindow& w = call.window;
  for_row_group<size>(call.samples * w.pixels(), call.channels, wide, [&](int64_t n, int64_t j, auto ending) {
    Group<Wide<T>, size> sum{};
    for_taps_over(w, n, [&](int tap, int64_t window, int, int) {
      const auto d = load<size>(dy + window * call.channels + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k)
        if (there(ending, k) && chosen[window * call.channels + j + k] == tap) sum.x[k] = sum.x[k] + d.x[k];
    });
    store(dx + n * call.channels + j, sum, ending);
  });
}

/// A thread has a group of channels of one sample.
template <class T>
__global__ void global_mean_groups(const T* x, T* y, int64_t samples, int64_t pixels, int64_t channels,
                                   bool wide) {
  constexpr int size = lanes<T>;
  using A = Wide<T>;
  for_row_group<size>(samples, channels, wide, [&](int64_t s, int64_t j, auto ending) {
    Group<A, size> sum{};
    for (int64_t p = 0; p < pixels; ++p) {
      const auto a = load<size>(x + (s * pixels + p) * channels + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) sum.x[k] = sum.x[k] + a.x[k];
    }
#pragma unroll
    for (int k = 0; k < size; ++k) sum.x[k] = sum.x[k] / static_cast<A>(pixels);
    store(y + s * channels + j, sum, ending);
  });
}
template <class T>
__global__ void global_mean_gradient_groups(const T* dy, T* dx, int64_t samples, int64_t pixels,
                                            int64_t channels, bool wide) {
  constexpr int size = lanes<T>;
  for_row_group<size>(samples * pixels, channels, wide, [&](int64_t n, int64_t j, auto ending) {
    auto d = load<size>(dy + quotient(n, pixels) * channels + j, ending);
#pragma unroll
    for (int k = 0; k < size; ++k) d.x[k] = d.x[k] / static_cast<Wide<T>>(pixels);
    store(dx + n * channels + j, d, ending);
  });
}

/// A thread has one number of y.
template <bool add, class T>
__global__ void turned_elements(const T* x, T* y, int64_t rows, int64_t cols, int64_t count) {
  const int64_t at = thread_index();
  if (at >= count) return;
  const int64_t row_of_y = quotient(at, rows), i = at - row_of_y * rows, n = quotient(row_of_y, cols),
                j = row_of_y - n * cols;
  const T number = x[(n * rows + i) * cols + j];
  if constexpr (add) y[at] = y[at] + number;
  else y[at] = number;
}

template <class T>
Grid windows_grid(const PixelCall& call) {
  return grid_of_row_groups(call.samples * call.window.windows(), call.channels, lanes<T>);
}
template <class T>
Grid pixels_grid(const PixelCall& call) {
  return grid_of_row_groups(call.samples * call.window.pixels(), call.channels, lanes<T>);
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const PixelNeighboursOperands& o) {
  const PixelCall call = o.checked();
  const auto with = [&]<class Bits>(Bits) {
    launch(stream(),
           grid_of_row_groups(call.samples * call.window.windows() * call.window.taps(), call.channels,
                              lanes<Bits>),
           neighbour_groups<Bits>, call, o.x.data, o.y.data,
           aligned(o.x.data, o.y.data) && whole_rows<Bits>(call.channels));
  };
  const std::size_t size = bytes_of(o.x.dtype);
  if (size == 2) with(std::uint16_t{});
  else if (size == 4) with(std::uint32_t{});
  else with(std::uint64_t{});
}

void GpuOperations::run(const PixelNeighboursBackwardOperands& o) {
  const PixelCall call = o.checked();
  with_number(dtype_index(o.dx.dtype), [&]<class T>(T) {
    launch(stream(), pixels_grid<T>(call), neighbour_gradient_groups<T>, call, o.dy.data, o.dx.data,
           aligned(o.dy.data, o.dx.data) && whole_rows<T>(call.channels));
  });
}

void GpuOperations::run(const PixelDepthwiseOperands& o) {
  const PixelCall call = o.checked();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), windows_grid<T>(call), depthwise_groups<false, T>, call, o.x.data, o.w.data, o.y.data,
           aligned(o.x.data, o.w.data, o.y.data) && whole_rows<T>(call.channels));
  });
}

void GpuOperations::run(const PixelDepthwiseBackwardInputOperands& o) {
  const PixelCall call = o.checked();
  with_number(dtype_index(o.dx.dtype), [&]<class T>(T) {
    launch(stream(), pixels_grid<T>(call), depthwise_groups<true, T>, call, o.dy.data, o.w.data, o.dx.data,
           aligned(o.dy.data, o.w.data, o.dx.data) && whole_rows<T>(call.channels));
  });
}

void GpuOperations::run(const PixelDepthwiseBackwardWeightOperands& o) {
  const PixelCall call = o.checked();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), Grid{blocks_for(o.parts.count(), group_threads), group_threads},
           depthwise_weight_parts<T>, call, o.dy.data, o.x.data, o.parts.data);
  });
}

void GpuOperations::run(const PoolOperands& o) {
  const PixelCall call = o.checked();
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    const bool wide = aligned(o.x.data, o.y.data) && whole_rows<T>(call.channels);
    if (o.kind == PoolKind::average)
      launch(stream(), windows_grid<T>(call), mean_groups<T>, call, o.x.data, o.y.data, wide);
    else
      launch(stream(), windows_grid<T>(call), largest_groups<T>, call, o.x.data, o.y.data,
             o.chosen.as<std::uint8_t>(), wide);
  });
}

void GpuOperations::run(const PoolBackwardOperands& o) {
  const PixelCall call = o.checked();
  with_number(dtype_index(o.dx.dtype), [&]<class T>(T) {
    const bool wide = aligned(o.dy.data, o.dx.data) && whole_rows<T>(call.channels);
    if (o.kind == PoolKind::average)
      launch(stream(), pixels_grid<T>(call), mean_gradient_groups<T>, call, o.dy.data, o.dx.data, wide);
    else
      launch(stream(), pixels_grid<T>(call), largest_gradient_groups<T>, call, o.dy.data,
             o.chosen.as<std::uint8_t>(), o.dx.data, wide);
  });
}

void GpuOperations::run(const GlobalPoolOperands& o) {
  const std::int64_t samples = o.x.shape[0], pixels = o.x.shape[1], channels = o.x.shape[2];
  with_number(dtype_index(o.x.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(samples, channels, lanes<T>), global_mean_groups<T>, o.x.data,
           o.y.data, samples, pixels, channels, aligned(o.x.data, o.y.data) && whole_rows<T>(channels));
  });
}

void GpuOperations::run(const GlobalPoolBackwardOperands& o) {
  const std::int64_t samples = o.dx.shape[0], pixels = o.dx.shape[1], channels = o.dx.shape[2];
  with_number(dtype_index(o.dx.dtype), [&]<class T>(T) {
    launch(stream(), grid_of_row_groups(samples * pixels, channels, lanes<T>), global_mean_gradient_groups<T>,
           o.dy.data, o.dx.data, samples, pixels, channels,
           aligned(o.dy.data, o.dx.data) && whole_rows<T>(channels));
  });
}

void GpuOperations::run(const TransposeOperands& o) {
  const std::int64_t rows = o.x.shape[1], cols = o.x.shape[2], count = o.x.count();
  const Grid grid{blocks_for(count, group_threads), group_threads};
  const auto turn = [&](auto kernel) {
    launch(stream(), grid, kernel, o.x.data, o.y.data, rows, cols, count);
  };
  if (o.x.dtype == DType::bf16) turn(turned_elements<false, std::uint16_t>);
  else if (o.x.dtype == DType::f64)
    turn(o.add ? turned_elements<true, double> : turned_elements<false, double>);
  else turn(o.add ? turned_elements<true, float> : turned_elements<false, float>);
}

}  // namespace mindpipe
