#include <functional>

#include "kernels/operand.h"

// Columns of an activation that are computed alone have the bits that they have among others, on any number
// of threads: a tensor rank, a tile of a kernel and a thread are three ways of having some of them.
namespace mindpipe::testing {
namespace {

/// Columns [first, first + count) of all there are.
struct Columns {
  std::int64_t all, first, count;

  std::int64_t place(std::int64_t i) const { return i / count * all + first + i % count; }
  /// Normal numbers in these columns: the last extent of `shape` is `count`, or several times as many.
  Operand drawn(const Shape& shape, DType dtype, std::string_view name) const {
    Operand made(shape, dtype);
    const RandomStream stream{.seed = 7, .purpose = purpose_of(name)};
    for (std::int64_t i = 0; i < made.count(); ++i)
      made.set(i, stream.normal(static_cast<std::uint64_t>(place(i))));
    return made;
  }
};

/// What an operation writes.
using Run = std::function<std::vector<Operand>(const Cpu&, DType, const Columns&)>;

void expect_bits_of_the_whole(const Run& run) {
  constexpr std::int64_t all = 85;
  const RandomStream stream{.seed = 3, .purpose = purpose_of("columns")};
  for_every_kind([&](const Cpu& cpu, DType dtype) {
    const std::vector<Operand> whole = run(cpu, dtype, {all, 0, all});
    for (std::uint32_t draw = 0; draw < 6; ++draw) {
      const std::int64_t count = 1 + stream.word(2 * draw) % (all - 1),
                         first = stream.word(2 * draw + 1) % (all - count + 1);
      const Columns some{all, first, count};
      const std::vector<Operand> alone = run(cpu, dtype, some);
      for (std::size_t k = 0; k < alone.size(); ++k)
        for (std::int64_t i = 0; i < alone[k].count(); ++i)
          ASSERT_EQ(alone[k][i], whole[k][some.place(i)])
              << "output " << k << ", element " << i << ", columns from " << first << ", " << count;
    }
  });
  expect_same_bits_on_threads([&](const Cpu& cpu, DType dtype) { return run(cpu, dtype, {200, 0, 200}); });
}

TEST(Columns, OfBatchNorm) {
  expect_bits_of_the_whole([](const Cpu& cpu, DType dtype, const Columns& c) {
    const std::int64_t rows = 300, n = c.count;
    const DType wide = wide_of(dtype);
    const Operand x = c.drawn({rows, n}, dtype, "x"), dy = c.drawn({rows, n}, dtype, "dy"),
                  residual = c.drawn({rows, n}, dtype, "residual"), gain = c.drawn({n}, dtype, "gain"),
                  offset = c.drawn({n}, dtype, "offset"), statistics = c.drawn({3, n}, wide, "statistics"),
                  sums = c.drawn({2, n}, wide, "sums");
    std::vector<Operand> out;
    for (bool relu : {false, true}) {
      const Operand y({rows, n}, dtype), dx({rows, n}, dtype), parts({pixel_chunks(rows), 2, n}, wide);
      cpu->batch_norm({x, statistics, gain, offset, relu, y});
      cpu->batch_norm_backward_sums({dy, x, statistics, gain, offset, relu, parts});
      cpu->batch_norm_backward_input({dy, x, statistics, gain, offset, sums, relu, residual, dx});
      for (const Operand* made : {&y, &dx, &parts}) out.push_back(*made);
    }
    return out;
  });
}

TEST(Columns, OfRunningMeans) {
  expect_bits_of_the_whole([](const Cpu& cpu, DType dtype, const Columns& c) {
    const DType wide = wide_of(dtype);
    const Operand sum = c.drawn({c.count}, wide, "sum"), master = c.drawn({c.count}, wide, "master"),
                  decision = decided({}, 1);
    cpu->running_mean({0.1, 0.5, decision, sum, master});
    return std::vector<Operand>{master};
  });
}

TEST(Columns, OfWindowsOnRows) {
  for (const Reach& reach : {Reach{3, true}, Reach{7, false}, Reach{15, true}})
    expect_bits_of_the_whole([&](const Cpu& cpu, DType dtype, const Columns& c) {
      const std::int64_t samples = 3, rows = 30, n = c.count, taps = reach.taps;
      const DType wide = wide_of(dtype);
      const Operand lengths = Operand::tokens({30, 17, 0}), x = c.drawn({samples, rows, n}, dtype, "x"),
                    dy = c.drawn({samples, rows, n}, dtype, "dy"), w = c.drawn({taps, n}, dtype, "w"),
                    near = c.drawn({samples, rows, taps * n}, dtype, "near");
      const Shape shape{samples, rows, n};
      const Operand y(shape, dtype), dx(shape, dtype),
          dw = c.drawn({taps, n}, wide, "dw"), rows_of({samples, rows, taps * n}, dtype), sums(shape, dtype),
          cleared(shape, dtype);
      cpu->depthwise({x, w, lengths, reach, y});
      cpu->depthwise_backward_input({dy, w, lengths, reach, dx});
      cpu->depthwise_backward_weight({dy, x, lengths, reach, dw});
      cpu->row_neighbours({x, lengths, reach, rows_of});
      cpu->row_neighbours_backward({near, lengths, reach, sums});
      cpu->clear_padding({x, lengths, cleared});
      return std::vector<Operand>{y, dx, dw, rows_of, sums, cleared};
    });
}

TEST(Columns, OfTapsThatChannelsShare) {
  expect_bits_of_the_whole([](const Cpu& cpu, DType dtype, const Columns& c) {
    const DType wide = wide_of(dtype);
    const Operand w = c.drawn({7, c.count}, dtype, "w"), dy = c.drawn({7, 2 * c.count}, wide, "dy"),
                  dw = c.drawn({7, c.count}, wide, "dw"), y({7, 2 * c.count}, dtype);
    cpu->share_taps({w, y});
    cpu->share_taps_backward({dy, w, dw});
    return std::vector<Operand>{y, dw};
  });
}

TEST(Columns, OfActivations) {
  for (Activation activation : {Activation::relu, Activation::silu})
    expect_bits_of_the_whole([&](const Cpu& cpu, DType dtype, const Columns& c) {
      const Operand x = c.drawn({20, c.count}, dtype, "x"), y({20, c.count}, dtype);
      cpu->activation({x, activation, y});
      return std::vector<Operand>{y};
    });
}

TEST(Columns, OfWindowsOnPixels) {
  for (const PixelWindow& w :
       {PixelWindow{7, 9, 3, 2, 1}, PixelWindow{7, 9, 3, 1, 2}, PixelWindow{6, 5, 5, 1, 1}})
    expect_bits_of_the_whole([&](const Cpu& cpu, DType dtype, const Columns& c) {
      const std::int64_t samples = 3, n = c.count, taps = w.taps();
      const Operand x = c.drawn({samples, w.pixels(), n}, dtype, "x"),
                    dy = c.drawn({samples, w.windows(), n}, dtype, "dy"),
                    dnear = c.drawn({samples, w.windows(), taps * n}, dtype, "near");
      const Operand near({samples, w.windows(), taps * n}, dtype), dx({samples, w.pixels(), n}, dtype),
          parts({pixel_chunks(samples * w.windows()), taps, n}, wide_of(dtype)), mean({samples, n}, dtype),
          spread({samples, w.pixels(), n}, dtype);
      cpu->pixel_neighbours({x, w, near});
      cpu->pixel_neighbours_backward({dnear, w, dx});
      cpu->pixel_depthwise_backward_weight({dy, x, w, parts});
      cpu->global_pool({x, mean});
      cpu->global_pool_backward({mean, spread});
      return std::vector<Operand>{near, dx, parts, mean, spread};
    });
}

/// These have other columns behind them than before: here threads share rows.
TEST(Columns, ThatMoveAreTheSameOnThreads) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const Operand x = Operand::random({4, 50, 60}, dtype, "x"),
                  sum = Operand::random({200, 90}, dtype, "sum");
    const Operand turned({4, 60, 50}, dtype), wider({200, 90}, dtype), narrower({200, 37}, dtype);
    cpu->transpose({x, false, turned});
    cpu->pad_columns({Tensor(x).reshaped({200, 60}), sum, wider});
    cpu->cut_columns({Tensor(x).reshaped({200, 60}), narrower});
    return std::vector<Operand>{turned, wider, narrower};
  });
}

}  // namespace
}  // namespace mindpipe::testing
