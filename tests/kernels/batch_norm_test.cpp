#include "kernels/operand.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

/// One norm of `rows` rows and what came of it.
struct NormedBatch {
  NormedBatch(const Cpu& cpu, DType dtype, std::int64_t rows, std::int64_t cols, bool relu, double center = 3)
      : rows(rows),
        cols(cols),
        x(Operand::random({rows, cols}, dtype, "x", 2)),
        dy(Operand::random({rows, cols}, dtype, "dy")),
        residual(Operand::random({rows, cols}, dtype, "residual")),
        gain(Operand::random({cols}, dtype, "gain")),
        offset(Operand::random({cols}, dtype, "offset")),
        parts({pixel_chunks(rows), 2, cols}, wide_of(dtype)),
        statistics({3, cols}, wide_of(dtype)),
        sum_parts({pixel_chunks(rows), 2, cols}, wide_of(dtype)),
        sums({2, cols}, wide_of(dtype)),
        y({rows, cols}, dtype),
        dx({rows, cols}, dtype) {
    for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, x[i] + center);
    cpu->batch_moments({x, parts});
    cpu->batch_statistics({parts, rows, 1e-5, statistics});
    cpu->batch_norm({x, statistics, gain, offset, relu, y});
    cpu->batch_norm_backward_sums({dy, x, statistics, gain, offset, relu, sum_parts});
    for (std::int64_t j = 0; j < 2 * cols; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < pixel_chunks(rows); ++i) sum += sum_parts[i * 2 * cols + j];
      sums.set(j, sum);
    }
    cpu->batch_norm_backward_input({dy, x, statistics, gain, offset, sums, relu, residual, dx});
  }
  std::int64_t rows, cols;
  Operand x, dy, residual, gain, offset, parts, statistics, sum_parts, sums, y, dx;
};

}  // namespace

TEST(BatchNorm, NormsColumnsOverAllRowsThereAndBack) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t rows : {9, 128, 129, 700})
      for (std::int64_t cols : {1, 16, 85})
        for (bool relu : {false, true}) {
          SCOPED_TRACE(fmt::format("{} x {}, relu {}", rows, cols, relu));
          const NormedBatch n(cpu, dtype, rows, cols, relu);
          std::vector<double> statistics(static_cast<std::size_t>(3 * cols)),
              y(static_cast<std::size_t>(rows * cols)), dx = y, sums(static_cast<std::size_t>(2 * cols));
          const double count = static_cast<double>(rows);
          for (std::int64_t j = 0; j < cols; ++j) {
            double mean = 0, squares = 0;
            for (std::int64_t i = 0; i < rows; ++i) mean += n.x[i * cols + j] / count;
            for (std::int64_t i = 0; i < rows; ++i) squares += std::pow(n.x[i * cols + j] - mean, 2);
            const double scale = 1 / std::sqrt(squares / count + 1e-5);
            statistics[static_cast<std::size_t>(j)] = mean;
            statistics[static_cast<std::size_t>(cols + j)] = scale;
            statistics[static_cast<std::size_t>(2 * cols + j)] = squares / (count - 1);
            double plain = 0, crossed = 0;
            const auto d = [&](std::int64_t at, double h) {
              return relu && h * n.gain[j] + n.offset[j] <= 0 ? 0 : n.dy[at];
            };
            for (std::int64_t i = 0; i < rows; ++i) {
              const std::int64_t at = i * cols + j;
              const double h = (n.x[at] - mean) * scale, out = h * n.gain[j] + n.offset[j];
              y[static_cast<std::size_t>(at)] = relu ? std::max(out, 0.0) : out;
              plain += d(at, h);
              crossed += d(at, h) * h;
            }
            sums[static_cast<std::size_t>(j)] = plain;
            sums[static_cast<std::size_t>(cols + j)] = crossed;
            for (std::int64_t i = 0; i < rows; ++i) {
              const std::int64_t at = i * cols + j;
              const double h = (n.x[at] - mean) * scale;
              dx[static_cast<std::size_t>(at)] =
                  n.residual[at] + n.gain[j] * scale * (d(at, h) - plain / count - h * crossed / count);
            }
          }
          // f32 statistics are beside bf16 too: what is left of their error is that of sums of 700 numbers.
          expect_close(n.statistics, statistics, 8);
          expect_close(n.sums, sums, dtype == DType::f64 ? 200 : 100);
          expect_close(n.y, y, 16);
          expect_close(n.dx, dx, 40);
        }
  });
}

TEST(BatchNorm, AMeanFarFromZeroCostsNoDigits) {
  const Cpu cpu;
  const NormedBatch far(cpu, DType::f32, 3000, 7, false, 1000), near(cpu, DType::f64, 3000, 7, false, 0);
  for (std::int64_t j = 0; j < 7; ++j) EXPECT_NEAR(far.statistics[14 + j] / near.statistics[14 + j], 1, 1e-4);
}

TEST(BatchNorm, AVarianceThatIsGivenIsTaken) {
  for (DType dtype : {DType::f64, DType::f32}) {
    const Cpu cpu;
    Operand parts({1, 2, 3}, dtype), statistics({3, 3}, dtype);
    for (std::int64_t j = 0; j < 3; ++j) {
      parts.set(j, 0.5 + static_cast<double>(j));
      parts.set(3 + j, 4);
    }
    cpu->batch_statistics({parts, 1, 0, statistics});
    EXPECT_EQ(statistics.values(), (std::vector<double>{0.5, 1.5, 2.5, 0.5, 0.5, 0.5, 4, 4, 4}));
  }
}

TEST(BatchNorm, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const NormedBatch n(cpu, dtype, 1500, 85, true);
    return std::vector<Operand>{n.parts, n.statistics, n.sum_parts, n.y, n.dx};
  });
}

TEST(BatchNorm, ColumnsAndPartsAloneHaveTheBitsOfTheWhole) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 85, few = 21, rows = 300;
    const NormedBatch n(cpu, dtype, rows, cols, true);
    for (std::int64_t first : {0, 5, 64}) {
      Operand x({rows, few}, dtype), parts({pixel_chunks(rows), 2, few}, wide_of(dtype)),
          statistics({3, few}, wide_of(dtype));
      for (std::int64_t i = 0; i < rows * few; ++i) x.set(i, n.x[i / few * cols + first + i % few]);
      cpu->batch_moments({x, parts});
      cpu->batch_statistics({parts, rows, 1e-5, statistics});
      for (std::int64_t i = 0; i < 3 * few; ++i)
        ASSERT_EQ(statistics[i], n.statistics[i / few * cols + first + i % few]);
    }
    const Tensor second = n.x.tensor().row_range(128, 128);
    const Operand parts({1, 2, cols}, wide_of(dtype));
    cpu->batch_moments({second, parts});
    for (std::int64_t j = 0; j < 2 * cols; ++j) ASSERT_EQ(parts[j], n.parts[2 * cols + j]);
  });
}

TEST(BatchNorm, RunningMeansFollowTheMeanUnlessTheStepIsSkipped) {
  for (bool rounds : {false, true}) {
    const Cpu cpu;
    Operand master({5}, DType::f32), sum({5}, DType::f32), decision({Decision::places}, DType::f64);
    const Operand value({5}, DType::bf16);
    for (std::int64_t i = 0; i < 5; ++i) {
      master.set(i, 1);
      sum.set(i, 12 * static_cast<double>(i));
    }
    const RunningMeanOperands operands{0.25, 1.0 / 4, decision,
                                       sum,  master,  rounds ? value.tensor() : Tensor{}};
    cpu->running_mean(operands);
    for (std::int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(master[i], 0.75 + 0.75 * static_cast<double>(i));
      EXPECT_EQ(value[i], rounds ? master[i] : 0);
    }
    decision.set(Decision::skipped, 1);
    cpu->running_mean(operands);
    EXPECT_EQ(master[4], 3.75);
  }
}

TEST(BatchNorm, OfAnotherShapeIsRefused) {
  const Cpu cpu;
  const Operand x({200, 4}, DType::f32), few({1, 2, 4}, DType::f32), parts({2, 2, 4}, DType::f32),
      statistics({3, 4}, DType::f32), gain({4}, DType::f32), short_gain({3}, DType::f32);
  EXPECT_THROW(cpu->batch_moments({x, few}), Error);
  EXPECT_THROW(cpu->batch_statistics({parts, 100, 1e-5, statistics}), Error);
  EXPECT_THROW(cpu->batch_norm({x, statistics, gain, short_gain, false, x}), Error);
  EXPECT_THROW(cpu->running_mean({0.1, 1, Operand({2}, DType::f64), gain, gain}), Error);
}
