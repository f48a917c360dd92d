#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/check.h"
#include "harness.h"
#include "layers/batch_norm.h"

namespace mindpipe::testing {
namespace {

/// A batch norm of a supernet over micro-batches of 6 rows of 8 channels.
class Calibrated : public ::testing::Test {
 protected:
  static constexpr std::int64_t rows = 6, channels = 8;
  static constexpr double epsilon = 1e-3;

  Calibrated() {
    unit.lay_out({1, 1, 0}, 1, 0, DType::f64);
    unit.allocate_values(memory);
    for (std::int64_t c = 0; c < channels; ++c) {
      unit.flat_values().as<double>()[unit.flat_offset(0, 0) + c] = 1;
      unit.flat_values().as<double>()[unit.flat_offset(1, 0) + c] = 0;
    }
  }

  /// What leaves the norm for a micro-batch that is drawn by its number.
  std::vector<double> pass(Tape::Mode mode, int number, std::int64_t calibrated) {
    Tape tape(*backend, kept, scratch);
    tape.mode = mode;
    tape.batch.calibrated = calibrated;
    tape.statistics = &statistics;
    statistics.enter(3);
    const Tensor x = tape.output({2, rows / 2, channels}, DType::f64), y = tape.output(x.shape, DType::f64);
    const std::vector<double> drawn = micro_batch(number);
    std::copy(drawn.begin(), drawn.end(), x.as<double>());
    norm.forward(x, y, tape);
    std::vector<double> left(y.as<double>(), y.as<double>() + y.count());
    tape.clear();
    scratch.release(0);
    return left;
  }
  static std::vector<double> micro_batch(int number) {
    return normals("micro-batch " + std::to_string(number), rows * channels, 1 + number, number);
  }
  /// Mean and unbiased variance of a channel of a micro-batch.
  static std::pair<double, double> moments(int number, std::int64_t c) {
    const std::vector<double> x = micro_batch(number);
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < rows; ++i) sum += x[i * channels + c];
    for (std::int64_t i = 0; i < rows; ++i) squares += std::pow(x[i * channels + c] - sum / rows, 2);
    return {sum / rows, squares / (rows - 1)};
  }
  /// What a micro-batch gives, normed by the mean of what some others are.
  static std::vector<double> normed(int number, const std::vector<int>& collected) {
    std::vector<double> x = micro_batch(number);
    for (std::int64_t c = 0; c < channels; ++c) {
      double mean = 0, variance = 0;
      for (const int other : collected) {
        mean += moments(other, c).first / static_cast<double>(collected.size());
        variance += moments(other, c).second / static_cast<double>(collected.size());
      }
      for (std::int64_t i = 0; i < rows; ++i)
        x[i * channels + c] = (x[i * channels + c] - mean) / std::sqrt(variance + epsilon);
    }
    return x;
  }
  static void expect_normed(const std::vector<double>& got, const std::vector<double>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12) << i;
  }

  Memory memory{Memory::Kind::host};
  std::unique_ptr<Backend> backend = make_cpu_backend(memory, 1, "auto");
  Communicator tensor{*backend, 1};
  Unit unit{"unit"};
  BatchNorm norm{{*backend, tensor, DType::f64, false, 5},
                 unit,
                 "norm",
                 Split::none,
                 {channels, false, epsilon, 0.1, false}};
  NetworkStatistics statistics{memory, {{3, aligned(norm.statistics_bytes())}}};
  Arena kept{memory, MemoryClass::activations, 1 << 16}, scratch{memory, MemoryClass::workspace, 1 << 16};
};

TEST_F(Calibrated, NormsNormWithTheMeanOfWhatTheirMicroBatchesWere) {
  EXPECT_EQ(unit.params().size(), 2U) << "a gain and an offset, and no running statistics";
  const auto own = [&](int number) {  // while it is calibrated a micro-batch is normed by what it is itself
    const std::vector<double> x = pass(Tape::Mode::calibrate, number, number);
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < rows; ++i) sum += x[i * channels];
    for (std::int64_t i = 0; i < rows; ++i) squares += x[i * channels] * x[i * channels];
    EXPECT_NEAR(sum, 0, 1e-12);
    EXPECT_NEAR(squares / rows, 1, 1e-2);
  };
  for (int number = 0; number < 3; ++number) own(number);
  expect_normed(pass(Tape::Mode::evaluate, 7, 3), normed(7, {0, 1, 2}));
  expect_normed(pass(Tape::Mode::evaluate, 8, 3), normed(8, {0, 1, 2}));
}

TEST_F(Calibrated, NormsForgetTheNetworkBefore) {
  pass(Tape::Mode::calibrate, 4, 0);
  pass(Tape::Mode::calibrate, 5, 1);
  pass(Tape::Mode::calibrate, 1, 0);
  expect_normed(pass(Tape::Mode::evaluate, 7, 1), normed(7, {1}));
}

TEST_F(Calibrated, NormsAreNotEvaluatedBefore) {
  try {
    pass(Tape::Mode::evaluate, 1, 0);
    FAIL() << "what would it norm with?";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("a network of a supernet is evaluated before it is calibrated"));
  }
}

}  // namespace
}  // namespace mindpipe::testing
