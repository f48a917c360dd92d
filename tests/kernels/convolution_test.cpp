#include "kernels/operand.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

/// Samples of all lengths that matter: none, one row, some, all, and more than there are.
const std::vector<std::int32_t> lengths_of_all_kinds{0, 1, 9, 23, 40};
constexpr Reach reaches[] = {{1, false}, {3, false}, {3, true},  {7, true},
                             {9, false}, {11, true}, {15, false}};

/// Operands of a convolution over [samples, rows, cols].
struct RowTaps {
  std::int64_t samples, rows, cols;
  Reach reach;
  DType dtype;
  bool padded = true;
  Operand lengths = Operand::tokens(lengths_of_all_kinds);

  Shape shape() const { return {samples, rows, cols}; }
  Operand random(const char* name) const { return Operand::random(shape(), dtype, name); }
  Operand weight() const { return Operand::random({reach.taps, cols}, dtype, "w"); }
  Tensor seen() const { return padded ? lengths.tensor() : Tensor{}; }
  std::int64_t length(std::int64_t sample) const {
    return padded ? std::min<std::int64_t>(lengths_of_all_kinds[static_cast<std::size_t>(sample)], rows)
                  : rows;
  }
  /// Calls work(row, other, tap) for every row, of all rows, and every row that it sees.
  template <class Work>
  void for_taps(const Work& work) const {
    for (std::int64_t s = 0; s < samples; ++s)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t t = 0; t < reach.taps; ++t) {
          const std::int64_t other = r - (reach.causal ? reach.taps - 1 : reach.taps / 2) + t;
          if (other >= 0 && other < length(s)) work(s * rows + r, s * rows + other, t);
        }
  }
};

template <class Check>
void for_reaches(const Check& check) {
  for_every_kind([&](const Cpu& cpu, DType dtype) {
    for (const Reach& reach : reaches)
      for (bool padded : {false, true})
        for (std::int64_t cols : {1, 7, 64, 101}) {
          SCOPED_TRACE(fmt::format("{} taps, {} columns", reach.taps, cols));
          check(cpu, RowTaps{5, 23, cols, reach, dtype, padded});
        }
  });
}

/// What the sums of absolute products are, at most: rounding is relative to them.
constexpr double slack_of_sums = 20;

/// NaN in every row of x that is padding.
void spoil_padding(const RowTaps& c, Operand& x) {
  for (std::int64_t s = 0; s < c.samples; ++s)
    for (std::int64_t i = (s * c.rows + c.length(s)) * c.cols; i < (s + 1) * c.rows * c.cols; ++i)
      x.set(i, NAN);
}

}  // namespace

TEST(Depthwise, SumsTheRowsAroundEachRowOrBeforeIt) {
  for_reaches([](const Cpu& cpu, const RowTaps& c) {
    Operand x = c.random("x"), y(c.shape(), c.dtype);
    const Operand w = c.weight();
    std::vector<double> want(static_cast<std::size_t>(x.count()));
    c.for_taps([&](std::int64_t row, std::int64_t other, std::int64_t t) {
      for (std::int64_t j = 0; j < c.cols; ++j)
        want[static_cast<std::size_t>(row * c.cols + j)] += w[t * c.cols + j] * x[other * c.cols + j];
    });
    spoil_padding(c, x);
    cpu->depthwise({x, w, c.seen(), c.reach, y});
    expect_close(y, want, slack_of_sums);
  });
}

TEST(Depthwise, ItsGradientsGoBackToTheRowsThatWereSeen) {
  for_reaches([](const Cpu& cpu, const RowTaps& c) {
    Operand x = c.random("x"), dx = c.random("stale"),
            dw = Operand::random({c.reach.taps, c.cols}, wide_of(c.dtype), "dw");
    const Operand w = c.weight(), dy = c.random("dy");
    std::vector<double> want(static_cast<std::size_t>(x.count())), want_weight = dw.values();
    c.for_taps([&](std::int64_t row, std::int64_t other, std::int64_t t) {
      for (std::int64_t j = 0; j < c.cols; ++j) {
        const double d = dy[row * c.cols + j];
        want[static_cast<std::size_t>(other * c.cols + j)] += w[t * c.cols + j] * d;
        want_weight[static_cast<std::size_t>(t * c.cols + j)] += x[other * c.cols + j] * d;
      }
    });
    spoil_padding(c, x);
    cpu->depthwise_backward_input({dy, w, c.seen(), c.reach, dx});
    cpu->depthwise_backward_weight({dy, x, c.seen(), c.reach, dw});
    expect_close(dx, want, slack_of_sums);
    expect_close(dw, want_weight, 10 * slack_of_sums);
  });
}

TEST(Depthwise, APartOfTheColumnsOrRowsAloneHasTheBitsOfTheWhole) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const RowTaps whole{2, 90, 150, {7, false}, dtype, false};
    const std::int64_t first = 37, cols = 81, first_row = 20,
                       rows = 31;  // of the part; with their neighbours
    const RowTaps part{1, rows + 6, cols, whole.reach, dtype, false};
    const Operand x = whole.random("x"), w = whole.weight();
    Operand y(whole.shape(), dtype), in(part.shape(), dtype), taps({7, cols}, dtype),
        out(part.shape(), dtype);
    for (std::int64_t j = 0; j < cols; ++j) {
      for (std::int64_t r = 0; r < part.rows; ++r)
        in.set(r * cols + j, x[(whole.rows + first_row + r) * whole.cols + first + j]);
      for (std::int64_t t = 0; t < 7; ++t) taps.set(t * cols + j, w[t * whole.cols + first + j]);
    }
    for (bool back : {false, true}) {
      if (back) {
        cpu->depthwise_backward_input({x, w, {}, whole.reach, y});
        cpu->depthwise_backward_input({in, taps, {}, part.reach, out});
      } else {
        cpu->depthwise({x, w, {}, whole.reach, y});
        cpu->depthwise({in, taps, {}, part.reach, out});
      }
      for (std::int64_t r = 3; r < rows + 3; ++r)
        for (std::int64_t j = 0; j < cols; ++j)
          ASSERT_EQ(out[r * cols + j], y[(whole.rows + first_row + r) * whole.cols + first + j])
              << "row " << r << ", column " << j;
    }
  });
}

TEST(Depthwise, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const RowTaps c{3, 150, 200, {11, false}, dtype, true, Operand::tokens({150, 77, 0})};
    const Operand x = c.random("x"), w = c.weight(), dy = c.random("dy");
    std::vector<Operand> out;
    for (int i = 0; i < 3; ++i) out.emplace_back(c.shape(), dtype);
    out.emplace_back(Shape{11, 200}, wide_of(dtype));
    out.emplace_back(Shape{3, 150, 11 * 200}, dtype);
    cpu->depthwise({x, w, c.lengths, c.reach, out[0]});
    cpu->depthwise_backward_input({dy, w, c.lengths, c.reach, out[1]});
    cpu->depthwise_backward_weight({dy, x, c.lengths, c.reach, out[3]});
    cpu->row_neighbours({x, c.lengths, c.reach, out[4]});
    cpu->row_neighbours_backward({out[4], c.lengths, c.reach, out[2]});
    return out;
  });
}

TEST(Depthwise, AnEvenOrTooLargeNumberOfTapsIsRefused) {
  const Cpu cpu;
  for (int taps : {0, 2, 8, 17}) {
    const Operand x({1, 4, 8}, DType::f32), w({taps, 8}, DType::f32);
    Operand y({1, 4, 8}, DType::f32);
    EXPECT_THROW(cpu->depthwise({x, w, {}, {taps, false}, y}), Error) << taps;
  }
  const Operand x({1, 4, 8}, DType::f32), w({3, 7}, DType::f32), lengths = Operand::tokens({1, 2});
  Operand y({1, 4, 8}, DType::f32);
  EXPECT_THROW(cpu->depthwise({x, w, {}, {3, false}, y}), Error);
  EXPECT_THROW(cpu->depthwise({x, Operand({3, 8}, DType::f32), lengths, {3, false}, y}), Error);
}

TEST(Neighbours, StandBesideEachOtherAndGoBackAsSums) {
  for_reaches([](const Cpu& cpu, const RowTaps& c) {
    Operand x = c.random("x"), dx = c.random("stale"),
            y = Operand::random({c.samples, c.rows, c.reach.taps * c.cols}, c.dtype, "stale too");
    const Operand dy = Operand::random({c.samples, c.rows, c.reach.taps * c.cols}, c.dtype, "dy");
    std::vector<double> want(static_cast<std::size_t>(y.count())), back(static_cast<std::size_t>(x.count()));
    c.for_taps([&](std::int64_t row, std::int64_t other, std::int64_t t) {
      for (std::int64_t j = 0; j < c.cols; ++j) {
        const std::int64_t at = (row * c.reach.taps + t) * c.cols + j;
        want[static_cast<std::size_t>(at)] = x[other * c.cols + j];
        back[static_cast<std::size_t>(other * c.cols + j)] += dy[at];
      }
    });
    spoil_padding(c, x);
    cpu->row_neighbours({x, c.seen(), c.reach, y});
    cpu->row_neighbours_backward({dy, c.seen(), c.reach, dx});
    EXPECT_EQ(y.values(), want) << "copies";
    expect_close(dx, back, slack_of_sums);
  });
}

TEST(SharedTaps, AreASoftmaxForChannelsThatFollowEachOtherByTheirNumber) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (int taps : {1, 3, 15}) {
      const std::int64_t columns = 5, channels = 20;
      const Operand w = Operand::random({taps, columns}, dtype, "w", 2),
                    dy = Operand::random({taps, channels}, wide_of(dtype), "dy");
      Operand y({taps, channels}, dtype), dw = Operand::random({taps, columns}, wide_of(dtype), "dw");
      std::vector<double> want(static_cast<std::size_t>(y.count())), gradient = dw.values();
      for (std::int64_t c = 0; c < columns; ++c) {
        std::vector<double> p, g(static_cast<std::size_t>(taps));
        double sum = 0, mean = 0;
        for (int t = 0; t < taps; ++t) sum += std::exp(w[t * columns + c]);
        for (int t = 0; t < taps; ++t) p.push_back(std::exp(w[t * columns + c]) / sum);
        for (std::size_t t = 0; t < p.size(); ++t)
          for (std::int64_t i = c; i < channels; i += columns) {
            const std::size_t at = t * channels + static_cast<std::size_t>(i);
            want[at] = p[t];
            g[t] += dy[static_cast<std::int64_t>(at)];
            mean += p[t] * dy[static_cast<std::int64_t>(at)];
          }
        for (std::size_t t = 0; t < p.size(); ++t)
          gradient[t * columns + static_cast<std::size_t>(c)] += p[t] * (g[t] - mean);
      }
      cpu->share_taps({w, y});
      cpu->share_taps_backward({dy, w, dw});
      expect_close(y, want);
      expect_close(dw, gradient, 4);
    }
  });
  const Cpu cpu;
  Operand y({3, 10}, DType::f32);
  EXPECT_THROW(cpu->share_taps({Operand({3, 4}, DType::f32), y}), Error) << "10 channels, 4 columns";
}
