#include "optim/noise_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace mindpipe {
namespace {

constexpr int extent = 256, batch = 256;

/// Squares of the gradients of shards of a batch, and of their sum, where the noise scale is known: a
/// gradient of length 1, and samples that scatter about it.
class KnownGradients {
 public:
  KnownGradients(int shards, double noise_scale, unsigned seed)
      : shards_(shards), deviation_(std::sqrt(noise_scale / extent * shards / batch)), random_(seed) {}

  /// The sum of the shards is `scale` times the batch's mean gradient.
  std::vector<double> squares(double scale) {
    std::vector<double> sum(extent, 0), squares;
    for (int shard = 0; shard < shards_; ++shard) {
      double square = 0;
      for (int i = 0; i < extent; ++i) {
        const double element = scale / shards_ * (1 / std::sqrt(extent) + deviation_ * normal_(random_));
        square += element * element;
        sum[i] += element;
      }
      squares.push_back(square);
    }
    double square = 0;
    for (const double element : sum) square += element * element;
    squares.push_back(square);
    return squares;
  }

 private:
  int shards_;
  double deviation_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

TEST(NoiseScale, IsWithinItsErrorOfWhatIsKnownInNinetyOfAHundredRuns) {
  for (const int shards : {2, 4, 16})
    for (const double known : {10.0, 100.0, 1000.0}) {
      int within = 0;
      double errors = 0;
      for (unsigned seed = 0; seed < 100; ++seed) {
        KnownGradients gradients(shards, known, seed);
        NoiseScale scale;
        for (int step = 0; step < 60; ++step) scale.add(gradient_noise(gradients.squares(7), 1.0 / 7, batch));
        const auto estimate = scale.estimate();
        ASSERT_TRUE(estimate);
        within += std::abs(estimate->samples - known) <= estimate->error * estimate->samples ? 1 : 0;
        errors += estimate->error / 100;
      }
      EXPECT_GE(within, 90) << shards << " shards, " << known;
      EXPECT_LT(errors, 0.3) << "an error that says nothing: " << shards << " shards, " << known;
    }
}

TEST(NoiseScale, SignalAndNoiseAreUnbiased) {
  KnownGradients gradients(4, 100, 1);
  double signal = 0, noise = 0;
  for (int step = 0; step < 2000; ++step) {
    const GradientNoise one = gradient_noise(gradients.squares(3), 1.0 / 3, batch);
    signal += one.signal / 2000;
    noise += one.noise / 2000;
  }
  EXPECT_NEAR(signal, 1, 0.01);
  EXPECT_NEAR(noise, 100, 1);
}

TEST(NoiseScale, IsNotKnownFromFewStepsOrWithoutASignal) {
  NoiseScale few, drowned;
  for (int step = 0; step < 9; ++step) few.add({1, 10});
  EXPECT_FALSE(few.estimate());
  few.add({1, 10});
  ASSERT_TRUE(few.estimate());
  EXPECT_NEAR(few.estimate()->samples, 10, 1e-9);
  for (int step = 0; step < 100; ++step) drowned.add({step % 2 == 0 ? -2.0 : 1.0, 10});
  EXPECT_FALSE(drowned.estimate());
}

TEST(NoiseScale, NewerStepsWeighMore) {
  NoiseScale scale;
  for (int step = 0; step < 100; ++step) scale.add({1, step < 50 ? 10.0 : 20.0});
  ASSERT_TRUE(scale.estimate());
  EXPECT_NEAR(scale.estimate()->samples, 20 - 10 * std::pow(0.98, 50) / (1 + std::pow(0.98, 50)), 1e-9);
}

TEST(NoiseScale, SaysWhatABatchIsWorth) {
  EXPECT_DOUBLE_EQ(NoiseScale::worth(512, 512), 256);
  EXPECT_NEAR(NoiseScale::worth(512, 812) / 512, 0.613, 0.001);
}

}  // namespace
}  // namespace mindpipe
