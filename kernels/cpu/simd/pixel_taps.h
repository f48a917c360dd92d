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
  int row[PixelWindow::most_taps], column[PixelWindow::most_taps];  ///< a place's, where it is a window
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
      taps.row[taps.count] = r;
      taps.column[taps.count] = c;
      taps.place[taps.count++] = r * across + c;
    }
  }
}

/// A walk over places of samples, row by row. Beside each other, places that have all their taps have the
/// same ones, further to the right: those are found once.
struct Walk {
  std::int64_t sample;
  int row, column, down, across;
  int begin, end;     ///< columns that have all taps
  int found_at = -1;  ///< the column whose taps are known, in this row; -1: none's are
  Taps taps;

  MINDPIPE_INLINE Walk(std::int64_t first, int down, int across, int begin, int end)
      : sample(first / (static_cast<std::int64_t>(down) * across)),
        row(static_cast<int>(first % (static_cast<std::int64_t>(down) * across)) / across),
        column(static_cast<int>(first % across)),
        down(down),
        across(across),
        begin(begin),
        end(end) {}
  MINDPIPE_INLINE bool has_all() const { return column >= begin && column < end; }
  MINDPIPE_INLINE void go_on() {
    if (++column < across) return;
    column = 0;
    found_at = -1;
    if (++row < down) return;
    row = 0;
    ++sample;
  }
};

/// Calls body(window n of all samples, the pixel that places of taps count from, taps, whether they are new).
template <class Body>
MINDPIPE_INLINE void for_windows(const PixelCall& call, std::int64_t first, std::int64_t last,
                                 const Body& body) {
  const PixelWindow& w = call.window;
  const int reach = w.reach(), begin = (reach + w.stride - 1) / w.stride,
            end = w.width - 1 - reach < 0 ? 0 : (w.width - 1 - reach) / w.stride + 1;
  Walk walk(first, w.down(), w.across(), begin, end);
  for (std::int64_t n = first; n < last; ++n, walk.go_on()) {
    const bool is_new = !walk.has_all() || walk.found_at < 0;
    if (is_new) {
      find_under(w, walk.row, walk.column, walk.taps);
      walk.found_at = walk.has_all() ? walk.column : -1;
    }
    const int shift = is_new ? 0 : (walk.column - walk.found_at) * w.stride;
    body(n, walk.sample * w.pixels() + shift, walk.taps, is_new);
  }
}
/// Calls body(pixel n of all samples, the window that places of taps count from, taps, whether they are new).
template <class Body>
MINDPIPE_INLINE void for_pixels(const PixelCall& call, std::int64_t first, std::int64_t last,
                                const Body& body) {
  const PixelWindow& w = call.window;
  const std::int64_t windows = w.windows();
  const int begin = w.reach(), end = w.stride == 1 ? w.width - w.reach() : 0;
  Walk walk(first, w.height, w.width, begin, end);
  for (std::int64_t n = first; n < last; ++n, walk.go_on()) {
    const bool is_new = !walk.has_all() || walk.found_at < 0;
    if (is_new) {
      find_over(w, walk.row, walk.column, walk.taps);
      walk.found_at = walk.has_all() ? walk.column : -1;
    }
    body(n, walk.sample * windows + (is_new ? 0 : walk.column - walk.found_at), walk.taps, is_new);
  }
}

/// Fetches `count` numbers from where a walk will be in a while, beyond what it reads or writes now: its
/// rows of pixels are too many streams, each too short, for the processor to foresee.
template <int is_written, class T>
MINDPIPE_INLINE void ask_beyond(const T* now, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T), beyond = 4096 / sizeof(T);
  for (std::int64_t j = 0; j < count; j += line) __builtin_prefetch(now + beyond + j, is_written);
}
/// Asks for the pixels, or windows, that the last taps will lead to.
template <class T>
MINDPIPE_INLINE void ask_beyond(const Taps& there, const T* from, std::int64_t channels) {
  if (there.count > 0) ask_beyond<0>(from + there.place[there.count - 1] * channels, channels);
}

/// y[j] = sum over taps k, in order, of term(total, k, column, ending), then times `scale`.
template <class T, class Term>
MINDPIPE_INLINE void sum_taps(int count, std::int64_t channels, T* y, Lanes<T> scale, const Term& term) {
  using V = Lanes<T>;
  constexpr int width = lanes_of<T>;
  ask_beyond<1>(y, channels);
  for_strips<T>(0, channels, [&]<int vectors>(std::int64_t j, Strip<vectors>, auto ending) {
    V total[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) total[v] = all<V>(0);
    for (int k = 0; k < count; ++k)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) total[v] = term(total[v], k, j + v * width, ending);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) write(y + j + v * width, total[v] * scale, ending);
  });
}

}  // namespace mindpipe::MINDPIPE_ISA
