#include "kernels/operand.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

constexpr std::int64_t pixel_samples = 3;

/// Sides, strides and dilations on odd and even pictures, one of them smaller than the window.
const std::vector<PixelWindow> windows{{7, 5, 1, 1, 1}, {6, 9, 1, 2, 1}, {7, 5, 3, 1, 1}, {8, 5, 3, 2, 1},
                                       {7, 9, 3, 1, 2}, {9, 7, 5, 2, 2}, {2, 3, 7, 1, 1}, {1, 1, 3, 1, 1}};

/// Calls visit(window of all samples, tap, pixel of all samples) for all pairs that there are.
template <class Visit>
void for_pairs(const PixelWindow& w, const Visit& visit) {
  const std::int64_t reach = w.dilation * (w.side / 2), across = (w.width + w.stride - 1) / w.stride;
  const std::int64_t down = (w.height + w.stride - 1) / w.stride;
  for (std::int64_t s = 0; s < pixel_samples; ++s)
    for (std::int64_t r = 0; r < down; ++r)
      for (std::int64_t c = 0; c < across; ++c)
        for (std::int64_t t = 0; t < w.side * w.side; ++t) {
          const std::int64_t row = r * w.stride + t / w.side * w.dilation - reach,
                             column = c * w.stride + t % w.side * w.dilation - reach;
          if (row >= 0 && row < w.height && column >= 0 && column < w.width)
            visit((s * down + r) * across + c, t, (s * w.height + row) * w.width + column);
        }
}
std::vector<double> zeros(const Operand& like) {
  return std::vector<double>(static_cast<std::size_t>(like.count()));
}

/// check(cpu, dtype, window, channels) for every kind, and channels below, at and beyond whole vectors.
template <class Check>
void for_every_window(const Check& check) {
  for_every_kind([&](const Cpu& cpu, DType dtype) {
    for (const PixelWindow& w : windows)
      for (std::int64_t channels : {1, 16, 85}) {
        SCOPED_TRACE(fmt::format("side {} stride {} dilation {} on {} x {}, {} channels", w.side, w.stride,
                                 w.dilation, w.height, w.width, channels));
        check(cpu, dtype, w, channels);
      }
  });
}

Operand pictures(const PixelWindow& w, std::int64_t channels, DType dtype, const std::string& name = "x") {
  return Operand::random({pixel_samples, w.pixels(), channels}, dtype, name);
}
Operand behind(const PixelWindow& w, std::int64_t channels, DType dtype, const std::string& name = "stale") {
  return Operand::random({pixel_samples, w.windows(), channels}, dtype, name);
}

}  // namespace

TEST(Pixels, NeighboursAreThoseUnderEachWindowAndZeros) {
  for_every_window([](const Cpu& cpu, DType dtype, const PixelWindow& w, std::int64_t channels) {
    const Operand x = pictures(w, channels, dtype), y = behind(w, channels * w.taps(), dtype);
    cpu->pixel_neighbours({x, w, y});
    std::vector<double> want = zeros(y);
    for_pairs(w, [&](auto window, auto tap, auto pixel) {
      for (std::int64_t c = 0; c < channels; ++c)
        want[static_cast<std::size_t>((window * w.taps() + tap) * channels + c)] = x[pixel * channels + c];
    });
    EXPECT_EQ(y.values(), want);
  });
}

TEST(Pixels, GradientsOfNeighboursAreAddedByPixel) {
  for_every_window([](const Cpu& cpu, DType dtype, const PixelWindow& w, std::int64_t channels) {
    const Operand dy = behind(w, channels * w.taps(), dtype, "dy"),
                  dx = pictures(w, channels, dtype, "stale");
    cpu->pixel_neighbours_backward({dy, w, dx});
    std::vector<double> want = zeros(dx);
    for_pairs(w, [&](auto window, auto tap, auto pixel) {
      for (std::int64_t c = 0; c < channels; ++c)
        want[static_cast<std::size_t>(pixel * channels + c)] += dy[(window * w.taps() + tap) * channels + c];
    });
    expect_close(dx, want, 4);
  });
}

TEST(Pixels, DepthwiseConvolutionsAndTheirGradients) {
  for_every_window([](const Cpu& cpu, DType dtype, const PixelWindow& w, std::int64_t channels) {
    const Operand x = pictures(w, channels, dtype), dy = behind(w, channels, dtype, "dy"),
                  weights = Operand::random({w.taps(), channels}, dtype, "w"), y = behind(w, channels, dtype),
                  dx = pictures(w, channels, dtype, "stale");
    const std::int64_t chunks = (pixel_samples * w.windows() + 127) / 128;
    const Operand parts = Operand::random({chunks, w.taps(), channels}, wide_of(dtype), "stale");
    cpu->pixel_depthwise({x, weights, w, y});
    cpu->pixel_depthwise_backward_input({dy, weights, w, dx});
    cpu->pixel_depthwise_backward_weight({dy, x, w, parts});
    std::vector<double> out = zeros(y), back = zeros(dx), dw = zeros(parts);
    for_pairs(w, [&](auto window, auto tap, auto pixel) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const double weight = weights[tap * channels + c];
        out[static_cast<std::size_t>(window * channels + c)] += weight * x[pixel * channels + c];
        back[static_cast<std::size_t>(pixel * channels + c)] += weight * dy[window * channels + c];
        dw[static_cast<std::size_t>((window / 128 * w.taps() + tap) * channels + c)] +=
            x[pixel * channels + c] * dy[window * channels + c];
      }
    });
    expect_close(y, out, 8);
    expect_close(dx, back, 8);
    expect_close(parts, dw, 32);
  });
}

TEST(Pixels, PoolsAndTheirGradients) {
  for_every_window([](const Cpu& cpu, DType dtype, const PixelWindow& dilated, std::int64_t channels) {
    PixelWindow w = dilated;
    w.dilation = 1;
    const Operand x = pictures(w, channels, dtype), dy = behind(w, channels, dtype, "dy"),
                  largest = behind(w, channels, dtype), mean = behind(w, channels, dtype),
                  dlargest = pictures(w, channels, dtype, "stale"),
                  dmean = pictures(w, channels, dtype, "stale"),
                  chosen({pixel_samples, w.windows(), channels}, DType::u8);
    cpu->pool({PoolKind::maximum, x, w, largest, chosen});
    cpu->pool({PoolKind::average, x, w, mean});
    cpu->pool_backward({PoolKind::maximum, dy, chosen, w, dlargest});
    cpu->pool_backward({PoolKind::average, dy, {}, w, dmean});
    std::vector<double> sum = zeros(mean), best(sum.size(), -1e30), from_largest = zeros(dmean),
                        from_mean = from_largest, count = sum;
    std::vector<std::int64_t> at(sum.size());
    for_pairs(w, [&](auto window, auto, auto pixel) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto o = static_cast<std::size_t>(window * channels + c);
        const double a = x[pixel * channels + c];
        sum[o] += a;
        count[o] += 1;
        if (a > best[o]) at[o] = pixel;
        best[o] = std::max(best[o], a);
      }
    });
    for_pairs(w, [&](auto window, auto, auto pixel) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto o = static_cast<std::size_t>(window * channels + c),
                   p = static_cast<std::size_t>(pixel * channels + c);
        from_mean[p] += dy[static_cast<std::int64_t>(o)] / count[o];
        if (at[o] == pixel) from_largest[p] += dy[static_cast<std::int64_t>(o)];
      }
    });
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] /= count[i];
    EXPECT_EQ(largest.values(), best);
    expect_close(mean, sum, 4);
    expect_close(dlargest, from_largest, 4);
    expect_close(dmean, from_mean, 4);
  });
}

TEST(Pixels, TheLargestOfNumbersAndNoNumberIsNoNumber) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const PixelWindow w{1, 3, 3, 3, 1};  // a window in the left corner: its middle, and a pixel on the right
    Operand x = Operand::random({1, 3, 5}, dtype, "x");
    x.set(5 + 2, std::nan(""));
    const Operand y({1, 1, 5}, dtype), chosen({1, 1, 5}, DType::u8);
    cpu->pool({PoolKind::maximum, x, w, y, chosen});
    for (std::int64_t c = 0; c < 5; ++c) EXPECT_EQ(std::isnan(y[c]), c == 2);
    EXPECT_EQ(chosen[2], 5);
  });
}

TEST(Pixels, GlobalPoolsAreMeansOfSamplesAndGiveEachPixelItsShare) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t channels : {1, 16, 85}) {
      const std::int64_t pixels = 35;
      const Operand x = Operand::random({2, pixels, channels}, dtype, "x"), y({2, channels}, dtype),
                    dy = Operand::random({2, channels}, dtype, "dy"), dx({2, pixels, channels}, dtype);
      cpu->global_pool({x, y});
      cpu->global_pool_backward({dy, dx});
      std::vector<double> mean = zeros(y), back = zeros(dx);
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const std::int64_t o = i / channels / pixels * channels + i % channels;
        mean[static_cast<std::size_t>(o)] += x[i] / static_cast<double>(pixels);
        back[static_cast<std::size_t>(i)] = dy[o] / static_cast<double>(pixels);
      }
      expect_close(y, mean, 4);
      expect_close(dx, back);
    }
  });
}

TEST(Pixels, TransposedMatricesAreSetOrAdded) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const Operand x = Operand::random({2, 9, 5}, dtype, "x"), y = Operand::random({2, 5, 9}, dtype, "y");
    const Operand before = y.copy();
    const bool adds = dtype != DType::bf16;
    cpu->transpose({x, adds, y});
    std::vector<double> want = adds ? before.values() : zeros(y);
    for (std::int64_t i = 0; i < x.count(); ++i)
      want[static_cast<std::size_t>((i / 45 * 5 + i % 5) * 9 + i / 5 % 9)] += x[i];
    expect_close(y, want);
    cpu->transpose({y, false, x});
    EXPECT_EQ(x[1], y[9]);
  });
}

TEST(Pixels, AloneAndInsideTheWholeTheyHaveTheSameBits) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    // A sample alone, and channels alone: neither knows of the others.
    const PixelWindow w{7, 9, 3, 2, 1};
    const std::int64_t channels = 85, few = 21;
    const auto run = [&](const Operand& x, const Operand& dy, const Operand& weights, std::int64_t samples,
                         std::int64_t n) {
      std::vector<Operand> out;
      for (int i = 0; i < 3; ++i) out.emplace_back(Shape{samples, w.windows(), n}, dtype);
      for (int i = 0; i < 3; ++i) out.emplace_back(Shape{samples, w.pixels(), n}, dtype);
      const Operand chosen({samples, w.windows(), n}, DType::u8);
      cpu->pixel_depthwise({x, weights, w, out[0]});
      cpu->pool({PoolKind::average, x, w, out[1]});
      cpu->pool({PoolKind::maximum, x, w, out[2], chosen});
      cpu->pixel_depthwise_backward_input({dy, weights, w, out[3]});
      cpu->pool_backward({PoolKind::average, dy, {}, w, out[4]});
      cpu->pool_backward({PoolKind::maximum, dy, chosen, w, out[5]});
      return out;
    };
    const auto part = [&](const Operand& whole, std::int64_t rows, std::int64_t skipped_rows,
                          std::int64_t first) {
      Operand made({rows, few}, dtype);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < few; ++c)
          made.set(r * few + c, whole[(skipped_rows + r) * channels + first + c]);
      return made;
    };
    const Operand x = pictures(w, channels, dtype), dy = behind(w, channels, dtype, "dy"),
                  weights = Operand::random({w.taps(), channels}, dtype, "w");
    const std::vector<Operand> whole = run(x, dy, weights, pixel_samples, channels);
    for (std::int64_t sample : {0, 2})
      for (std::int64_t first : {0, 5, 64}) {
        const Operand x_alone = part(x, w.pixels(), sample * w.pixels(), first).copy();
        Operand shaped({1, w.pixels(), few}, dtype);
        std::memcpy(shaped.tensor().data, x_alone.tensor().data, shaped.tensor().bytes());
        const std::vector<Operand> alone = run(shaped, part(dy, w.windows(), sample * w.windows(), first),
                                               part(weights, w.taps(), 0, first), 1, few);
        for (std::size_t i = 0; i < alone.size(); ++i) {
          const std::int64_t rows = alone[i].count() / few;
          EXPECT_EQ(alone[i].values(), part(whole[i], rows, sample * rows, first).values()) << "output " << i;
        }
      }
  });
}

TEST(Pixels, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const PixelWindow w{40, 30, 3, 2, 1};
    const std::int64_t channels = 40;
    const Operand x = pictures(w, channels, dtype), dy = behind(w, channels, dtype, "dy"),
                  weights = Operand::random({w.taps(), channels}, dtype, "w"),
                  chosen({pixel_samples, w.windows(), channels}, DType::u8);
    std::vector<Operand> out;
    for (int i = 0; i < 3; ++i) out.push_back(behind(w, channels, dtype));
    for (int i = 0; i < 4; ++i) out.push_back(pictures(w, channels, dtype));
    out.push_back(behind(w, channels * w.taps(), dtype));
    out.emplace_back(Shape{pixel_chunks(pixel_samples * w.windows()), w.taps(), channels}, wide_of(dtype));
    out.emplace_back(Shape{pixel_samples, channels}, dtype);
    cpu->pixel_depthwise({x, weights, w, out[0]});
    cpu->pool({PoolKind::average, x, w, out[1]});
    cpu->pool({PoolKind::maximum, x, w, out[2], chosen});
    cpu->pixel_depthwise_backward_input({dy, weights, w, out[3]});
    cpu->pool_backward({PoolKind::average, dy, {}, w, out[4]});
    cpu->pool_backward({PoolKind::maximum, dy, chosen, w, out[5]});
    cpu->pixel_neighbours({x, w, out[7]});
    cpu->pixel_neighbours_backward({out[7], w, out[6]});
    cpu->pixel_depthwise_backward_weight({dy, x, w, out[8]});
    cpu->global_pool({x, out[9]});
    return out;
  });
}

TEST(Pixels, WindowsThatDoNotFitAreRefused) {
  const Cpu cpu;
  const Operand x({2, 20, 4}, DType::f32), y({2, 20, 4}, DType::f32);
  EXPECT_THROW(cpu->pool({PoolKind::average, x, {4, 5, 2, 1, 1}, y}), Error) << "an even side";
  EXPECT_THROW(cpu->pool({PoolKind::average, x, {4, 4, 3, 1, 1}, y}), Error) << "fewer pixels";
  EXPECT_THROW(cpu->pool({PoolKind::average, x, {4, 5, 3, 2, 1}, y}), Error) << "more windows";
  EXPECT_THROW(cpu->pool({PoolKind::maximum, x, {4, 5, 3, 1, 1}, y}), Error) << "nobody says which is chosen";
  EXPECT_THROW(cpu->pool({PoolKind::average, x, {4, 5, 17, 1, 1}, y}), Error) << "too wide";
}
