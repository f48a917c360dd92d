#pragma once
#include <cstdint>

// Kernels of every instruction set read this: no function of it may be one that the linker keeps for all.
#ifdef __CUDACC__
#define MINDPIPE_EVERYWHERE __host__ __device__
#else
#define MINDPIPE_EVERYWHERE __attribute__((always_inline))
#endif

namespace mindpipe {

/// Square windows on pictures: where each lies, and what lies under it. Their middles are every stride-th
/// pixel, from the first on; what of them lies beyond the picture is not there. A window's pixels are its
/// taps, counted in reading order.
struct PixelWindow {
  static constexpr int most_taps = 225;
  std::int32_t height = 0, width = 0;  ///< extents of a picture
  std::int32_t side = 1, stride = 1, dilation = 1;

  MINDPIPE_EVERYWHERE constexpr bool fits() const {
    return height > 0 && width > 0 && side > 0 && side % 2 == 1 && taps() <= most_taps && stride > 0 &&
           dilation > 0;
  }
  MINDPIPE_EVERYWHERE constexpr int taps() const { return side * side; }
  MINDPIPE_EVERYWHERE constexpr int reach() const { return dilation * (side / 2); }
  MINDPIPE_EVERYWHERE constexpr std::int64_t pixels() const { return std::int64_t{height} * width; }
  /// Windows down and across.
  MINDPIPE_EVERYWHERE constexpr int down() const { return (height + stride - 1) / stride; }
  MINDPIPE_EVERYWHERE constexpr int across() const { return (width + stride - 1) / stride; }
  MINDPIPE_EVERYWHERE constexpr std::int64_t windows() const { return std::int64_t{down()} * across(); }

  /// The row or column, perhaps beyond the picture, under place i of the window number `at`.
  MINDPIPE_EVERYWHERE constexpr int under(int at, int i) const {
    return at * stride + i * dilation - reach();
  }
  /// The number of the window, of `count`, that has row or column `at` under its place i; -1 where none has.
  MINDPIPE_EVERYWHERE constexpr int over(int at, int i, int count) const {
    int window = at + reach() - i * dilation;
    if (window < 0) return -1;
    if (stride > 1) {
      if (window % stride != 0) return -1;
      window /= stride;
    }
    return window < count ? window : -1;
  }
  /// Places of the window number `at` that lie on a picture of `extent`; the dilation is 1.
  MINDPIPE_EVERYWHERE constexpr int present(int at, int extent) const {
    const int begin = at * stride - reach(), end = begin + side;
    return (end < extent ? end : extent) - (begin > 0 ? begin : 0);
  }
};

/// Windows on all pixels of some samples.
struct PixelCall {
  std::int64_t samples, channels;
  PixelWindow window;
};

/// Rows of which sums over all rows have a part each: a part's own are added first.
inline constexpr std::int64_t pixel_chunk = 128;
constexpr std::int64_t pixel_chunks(std::int64_t rows) { return (rows + pixel_chunk - 1) / pixel_chunk; }

enum class PoolKind : std::uint8_t { maximum, average };

}  // namespace mindpipe
