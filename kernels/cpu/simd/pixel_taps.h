#pragma once
#include "cpu/simd/strips.h"
#include "operations/pixel_window.h"

namespace mindpipe::MINDPIPE_ISA {

/// What one pixel, or window, is made of: the taps that are there, in order, and which window, or pixel, of
/// its sample each of them leads to.
struct Taps {
  int count = 0;
  int tap[PixelWindow::most_taps];
  int place[PixelWindow::most_taps];
};

/// The pixels under window (row, column).
inline void find_under(const PixelWindow& w, int row, int column, Taps& taps) {
  taps.count = 0;
  for (int i = 0; i < w.side; ++i) {
    const int r = w.under(row, i);
    if (r < 0 || r >= w.height) continue;
    for (int j = 0; j < w.side; ++j) {
      const int c = w.under(column, j);
      if (c < 0 || c >= w.width) continue;
      taps.tap[taps.count] = i * w.side + j;
      taps.place[taps.count++] = r * w.width + c;
    }
  }
}
/// The windows over pixel (row, column).
inline void find_over(const PixelWindow& w, int row, int column, Taps& taps) {
  const int down = w.down(), across = w.across();
  taps.count = 0;
  for (int i = 0; i < w.side; ++i) {
    const int r = w.over(row, i, down);
    if (r < 0) continue;
    for (int j = 0; j < w.side; ++j) {
      const int c = w.over(column, j, across);
      if (c < 0) continue;
      taps.tap[taps.count] = i * w.side + j;
      taps.place[taps.count++] = r * across + c;
    }
  }
}

/// Calls body(window n of all samples, first pixel of its sample, taps, row, column).
template <class Body>
MINDPIPE_INLINE void for_windows(const PixelCall& call, std::int64_t first, std::int64_t last,
                                 const Body& body) {
  const PixelWindow& w = call.window;
  const std::int64_t windows = w.windows();
  const int across = w.across();
  std::int64_t sample = first / windows;
  int row = static_cast<int>(first % windows) / across, column = static_cast<int>(first % windows) % across;
  Taps taps;
  for (std::int64_t n = first; n < last; ++n) {
    find_under(w, row, column, taps);
    body(n, sample * w.pixels(), taps, row, column);
    if (++column < across) continue;
    column = 0;
    if (++row < w.down()) continue;
    row = 0;
    ++sample;
  }
}
/// Calls body(pixel n of all samples, first window of its sample, taps).
template <class Body>
MINDPIPE_INLINE void for_pixels(const PixelCall& call, std::int64_t first, std::int64_t last,
                                const Body& body) {
  const PixelWindow& w = call.window;
  const std::int64_t pixels = w.pixels(), windows = w.windows();
  std::int64_t sample = first / pixels;
  int row = static_cast<int>(first % pixels) / w.width, column = static_cast<int>(first % pixels) % w.width;
  Taps taps;
  for (std::int64_t n = first; n < last; ++n) {
    find_over(w, row, column, taps);
    body(n, sample * windows, taps);
    if (++column < w.width) continue;
    column = 0;
    if (++row < w.height) continue;
    row = 0;
    ++sample;
  }
}

/// y[j] = sum over taps k, in order, of term(total, k, column, ending), then times `scale`.
template <class T, class Term>
MINDPIPE_INLINE void sum_taps(int count, std::int64_t channels, T* y, Lanes<T> scale, const Term& term) {
  using V = Lanes<T>;
  constexpr int width = lanes_of<T>;
  for_strips<T>(0, channels, [&]<int vectors>(std::int64_t j, Strip<vectors>, auto ending) {
    V total[vectors];
    for (int v = 0; v < vectors; ++v) total[v] = all<V>(0);
    for (int k = 0; k < count; ++k)
      for (int v = 0; v < vectors; ++v) total[v] = term(total[v], k, j + v * width, ending);
    for (int v = 0; v < vectors; ++v) write(y + j + v * width, total[v] * scale, ending);
  });
}

}  // namespace mindpipe::MINDPIPE_ISA
