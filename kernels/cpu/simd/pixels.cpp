#include "cpu/simd/pixel_kernels.h"
#include "cpu/simd/pixel_taps.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

template <class T>
MINDPIPE_INLINE void copy(const T* from, T* to, int64_t count) {
  constexpr int64_t piece = 32 / sizeof(T);
  int64_t i = 0;
  for (; i + piece <= count; i += piece) __builtin_memcpy(to + i, from + i, 32);
  for (; i < count; ++i) to[i] = from[i];
}
template <class T>
MINDPIPE_INLINE void clear(T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = T();
}

/// y[o, t] = x[the pixel under tap t of o]
template <class T>
void neighbours(const PixelCall& call, const void* x, void* y, int64_t first, int64_t last) {
  const int64_t channels = call.channels, taps = call.window.taps();
  for_windows(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
    const T* from = static_cast<const T*>(x) + base * channels;
    ask_beyond(there, from, channels);
    T* to = static_cast<T*>(y) + n * taps * channels;
    int k = 0;
    for (int t = 0; t < taps; ++t, to += channels) {
      if (k < there.count && there.tap[k] == t) copy(from + there.place[k++] * channels, to, channels);
      else clear(to, channels);
    }
  });
}

/// dx[p] = sum of dy[o, t] over windows o with p under tap t
template <class T>
void neighbours_backward(const PixelCall& call, const void* dy, void* dx, int64_t first, int64_t last) {
  const int64_t channels = call.channels, taps = call.window.taps();
  for_pixels(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
    const T* from = static_cast<const T*>(dy) + base * taps * channels;
    sum_taps<T>(there.count, channels, static_cast<T*>(dx) + n * channels, all<Lanes<T>>(1),
                [&](Lanes<T> total, int k, int64_t j, auto ending) {
                  return total + read(from + (there.place[k] * taps + there.tap[k]) * channels + j, ending);
                });
  });
}

/// y[n] = sum of w[t] x[place of t]
template <class T, class W>
MINDPIPE_INLINE void weigh(const Taps& there, const T* x, const W* w, T* y, int64_t channels) {
  ask_beyond(there, x, channels);
  sum_taps<T>(there.count, channels, y, all<Lanes<T>>(1), [&](Lanes<T> total, int k, int64_t j, auto ending) {
    return multiply_add(read(x + there.place[k] * channels + j, ending),
                        read(w + there.tap[k] * channels + j, ending), total);
  });
}
/// Calls body with the weights, widened where they are few enough to be kept so.
template <class T, class Body>
MINDPIPE_INLINE void with_taps(const PixelCall& call, const void* w, const Body& body) {
  constexpr int64_t most = sizeof(T) < 4 ? 8192 : 1;
  const int64_t count = call.window.taps() * call.channels;
  if (count > most) {
    body(static_cast<const T*>(w));
    return;
  }
  Wide<T> wide[most];
  for (int64_t i = 0; i < count; ++i) wide[i] = widen(static_cast<const T*>(w)[i]);
  body(static_cast<const Wide<T>*>(wide));
}
template <class T>
void depthwise(const PixelCall& call, const void* x, const void* w, void* y, int64_t first, int64_t last) {
  const int64_t channels = call.channels;
  with_taps<T>(call, w, [&](const auto* taps) {
    for_windows(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
      weigh(there, static_cast<const T*>(x) + base * channels, taps, static_cast<T*>(y) + n * channels,
            channels);
    });
  });
}
template <class T>
void depthwise_backward_input(const PixelCall& call, const void* dy, const void* w, void* dx, int64_t first,
                              int64_t last) {
  const int64_t channels = call.channels;
  with_taps<T>(call, w, [&](const auto* taps) {
    for_pixels(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
      weigh(there, static_cast<const T*>(dy) + base * channels, taps, static_cast<T*>(dx) + n * channels,
            channels);
    });
  });
}

/// parts[i, t] = sum of dy[o] x[the pixel under tap t of o] over the windows of part i, in order
template <class T>
void depthwise_backward_weight(const PixelCall& call, const void* dy, const void* x, void* parts,
                               int64_t first, int64_t last) {
  using A = Wide<T>;
  const int64_t channels = call.channels, taps = call.window.taps(),
                windows = call.samples * call.window.windows();
  for (int64_t part = first; part < last; ++part) {
    A* sums = static_cast<A*>(parts) + part * taps * channels;
    clear(sums, taps * channels);
    const int64_t begin = part * pixel_chunk,
                  end = begin + pixel_chunk < windows ? begin + pixel_chunk : windows;
    for_windows(call, begin, end, [&](int64_t n, int64_t base, const Taps& there, bool) {
      const T *d = static_cast<const T*>(dy) + n * channels, *in = static_cast<const T*>(x) + base * channels;
      ask_beyond(there, in, channels);
      ask_beyond<0>(d, channels);
      for_lanes<T>(channels, [&](int64_t j, auto ending) {
        const Lanes<T> dj = read(d + j, ending);
        for (int k = 0; k < there.count; ++k) {
          A* sum = sums + there.tap[k] * channels + j;
          write(sum, multiply_add(read(in + there.place[k] * channels + j, ending), dj, read(sum, ending)),
                ending);
        }
      });
    });
  }
}

/// x[p] / pixels, added in order
template <class T>
void mean(const PixelCall& call, const void* x, void* y, int64_t first, int64_t last) {
  const int64_t channels = call.channels;
  for_windows(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
    const T* from = static_cast<const T*>(x) + base * channels;
    ask_beyond(there, from, channels);
    sum_taps<T>(there.count, channels, static_cast<T*>(y) + n * channels,
                all<Lanes<T>>(static_cast<double>(Wide<T>(1) / static_cast<Wide<T>>(there.count))),
                [&](Lanes<T> total, int k, int64_t j, auto ending) {
                  return total + read(from + there.place[k] * channels + j, ending);
                });
  });
}
/// dx[p] = sum of dy[o] / pixels under o
template <class T>
void mean_backward(const PixelCall& call, const void* dy, void* dx, int64_t first, int64_t last) {
  const int64_t channels = call.channels;
  const PixelWindow& w = call.window;
  const int64_t windows = w.windows();
  Wide<T> part[PixelWindow::most_taps + 1], share[PixelWindow::most_taps];
  for (int pixels = 1; pixels <= w.taps(); ++pixels) part[pixels] = Wide<T>(1) / static_cast<Wide<T>>(pixels);
  for_pixels(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
    const T* from = static_cast<const T*>(dy) + base * channels;
    const int shift = static_cast<int>(base % windows);
    ask_beyond(there, from, channels);
    const int end = there.count - 1;  // rows and columns fall: the first and the last tap bound them
    const auto is_whole = [&](int k) {
      return w.present(there.row[k], w.height) * w.present(there.column[k] + shift, w.width) == w.taps();
    };
    if (end >= 0 && is_whole(0) && is_whole(end)) {
      for (int k = 0; k <= end; ++k) share[k] = part[w.taps()];
    } else {
      for (int k = 0; k <= end; ++k)
        share[k] = part[w.present(there.row[k], w.height) * w.present(there.column[k] + shift, w.width)];
    }
    sum_taps<T>(there.count, channels, static_cast<T*>(dx) + n * channels, all<Lanes<T>>(1),
                [&](Lanes<T> total, int k, int64_t j, auto ending) {
                  return multiply_add(read(from + there.place[k] * channels + j, ending),
                                      all<Lanes<T>>(static_cast<double>(share[k])), total);
                });
  });
}

/// Comparisons of single numbers.
struct SingleMask {
  bool is;
};
MINDPIPE_INLINE SingleMask greater(Single a, Single b) { return {a.v > b.v}; }
MINDPIPE_INLINE SingleMask equal(Single a, Single b) { return {a.v == b.v}; }
MINDPIPE_INLINE SingleMask not_a_number(Single a) { return {a.v != a.v}; }
MINDPIPE_INLINE SingleMask operator|(SingleMask a, SingleMask b) { return {a.is || b.is}; }
MINDPIPE_INLINE Single select(SingleMask mask, Single a, Single b) { return mask.is ? a : b; }

/// Bytes as numbers, and back.
MINDPIPE_INLINE Single numbers_of(const std::uint8_t* from, Single) { return {static_cast<double>(*from)}; }
MINDPIPE_INLINE Vector numbers_of(const std::uint8_t* from, Vector) {
  alignas(64) std::int32_t wide[lanes];
  for (int i = 0; i < lanes; ++i) wide[i] = from[i];
  return to_floats(load(wide));
}
MINDPIPE_INLINE void put_bytes(Single a, std::uint8_t* to) { *to = static_cast<std::uint8_t>(a.v); }
MINDPIPE_INLINE void put_bytes(Vector a, std::uint8_t* to) {
  alignas(64) std::int32_t wide[lanes];
  store(wide, to_integers(a));
  for (int i = 0; i < lanes; ++i) to[i] = static_cast<std::uint8_t>(wide[i]);
}
template <class V>
MINDPIPE_INLINE V read_bytes(const std::uint8_t* from, V like, Whole) {
  return numbers_of(from, like);
}
template <class V>
MINDPIPE_INLINE V read_bytes(const std::uint8_t* from, V like, Some some) {
  std::uint8_t there[lanes] = {};
  __builtin_memcpy(there, from, static_cast<unsigned>(some.count));
  return numbers_of(there, like);
}
template <class V>
MINDPIPE_INLINE void write_bytes(std::uint8_t* to, V a, Whole) {
  put_bytes(a, to);
}
template <class V>
MINDPIPE_INLINE void write_bytes(std::uint8_t* to, V a, Some some) {
  std::uint8_t made[lanes];
  put_bytes(a, made);
  __builtin_memcpy(to, made, static_cast<unsigned>(some.count));
}

/// The largest of x[p], the first of several; a NaN is larger than all, the last of several
template <class T>
void largest(const PixelCall& call, const void* x, void* y, std::uint8_t* chosen, int64_t first,
             int64_t last) {
  using V = Lanes<T>;
  constexpr int width = lanes_of<T>;
  const int64_t channels = call.channels;
  for_windows(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
    const T* from = static_cast<const T*>(x) + base * channels;
    ask_beyond(there, from, channels);
    for_strips<T>(0, channels, [&]<int vectors>(int64_t j, Strip<vectors>, auto ending) {
      V best[vectors], which[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        best[v] = read(from + there.place[0] * channels + j + v * width, ending);
        which[v] = all<V>(there.tap[0]);
      }
      for (int k = 1; k < there.count; ++k) {
        const V tap = all<V>(there.tap[k]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          const V a = read(from + there.place[k] * channels + j + v * width, ending);
          const auto wins = greater(a, best[v]) | not_a_number(a);
          which[v] = select(wins, tap, which[v]);
          best[v] = select(wins, a, best[v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        write(static_cast<T*>(y) + n * channels + j + v * width, best[v], ending);
        write_bytes(chosen + n * channels + j + v * width, which[v], ending);
      }
    });
  });
}
/// dx[p] = sum of dy[o] over windows o that chose p
template <class T>
void largest_backward(const PixelCall& call, const void* dy, const std::uint8_t* chosen, void* dx,
                      int64_t first, int64_t last) {
  using V = Lanes<T>;
  const int64_t channels = call.channels;
  for_pixels(call, first, last, [&](int64_t n, int64_t base, const Taps& there, bool) {
    const T* from = static_cast<const T*>(dy) + base * channels;
    const std::uint8_t* said = chosen + base * channels;
    ask_beyond(there, from, channels);
    ask_beyond(there, said, channels);
    sum_taps<T>(there.count, channels, static_cast<T*>(dx) + n * channels, all<V>(1),
                [&](V total, int k, int64_t j, auto ending) {
                  const int64_t at = there.place[k] * channels + j;
                  const auto is_chosen = equal(read_bytes(said + at, total, ending), all<V>(there.tap[k]));
                  return total + select(is_chosen, read(from + at, ending), all<V>(0));
                });
  });
}

/// y[s] = mean of x[s, :], in order
template <class T>
void global_mean(const void* x, void* y, int64_t pixels, int64_t channels, int64_t first, int64_t last) {
  for (int64_t s = first; s < last; ++s) {
    const T* from = static_cast<const T*>(x) + s * pixels * channels;
    T* to = static_cast<T*>(y) + s * channels;
    for_strips<T>(0, channels, [&]<int vectors>(int64_t j, Strip<vectors>, auto ending) {
      using V = Lanes<T>;
      V total[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) total[v] = all<V>(0);
      for (int64_t p = 0; p < pixels; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          total[v] = total[v] + read(from + p * channels + j + v * lanes_of<T>, ending);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        write(to + j + v * lanes_of<T>, total[v] / all<V>(static_cast<double>(pixels)), ending);
    });
  }
}
template <class T>
void global_mean_backward(const void* dy, void* dx, int64_t pixels, int64_t channels, int64_t first,
                          int64_t last) {
  for (int64_t s = first; s < last; ++s) {
    const T* from = static_cast<const T*>(dy) + s * channels;
    T* to = static_cast<T*>(dx) + s * pixels * channels;
    for_lanes<T>(channels, [&](int64_t j, auto ending) {
      write(to + j, read(from + j, ending) / all<Lanes<T>>(static_cast<double>(pixels)), ending);
    });
    for (int64_t p = 1; p < pixels; ++p) copy(to, to + p * channels, channels);
  }
}

}  // namespace

#define MINDPIPE_BY_DTYPE(kernel) \
  { kernel<double>, kernel<float>, kernel<bf16> }
const PixelKernels pixel_kernels = {
    MINDPIPE_BY_DTYPE(neighbours),
    MINDPIPE_BY_DTYPE(neighbours_backward),
    MINDPIPE_BY_DTYPE(depthwise),
    MINDPIPE_BY_DTYPE(depthwise_backward_input),
    MINDPIPE_BY_DTYPE(depthwise_backward_weight),
    MINDPIPE_BY_DTYPE(largest),
    MINDPIPE_BY_DTYPE(largest_backward),
    MINDPIPE_BY_DTYPE(mean),
    MINDPIPE_BY_DTYPE(mean_backward),
    MINDPIPE_BY_DTYPE(global_mean),
    MINDPIPE_BY_DTYPE(global_mean_backward),
};

}  // namespace mindpipe::MINDPIPE_ISA
