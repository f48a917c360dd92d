#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

namespace mindpipe {

/// What the gradients of a step's data shards say of the gradient of samples without end. Both are unbiased.
struct GradientNoise {
  double signal = 0;  ///< square of that gradient
  double noise = 0;   ///< variance of the gradient of one sample, over all elements
};

/// `squares`: of the gradients of equal shards of `samples` samples in all, and of their sum behind them.
/// `factor`: what makes the mean gradient of that sum.
GradientNoise gradient_noise(std::span<const double> squares, double factor, std::int64_t samples);

/// The noise scale of the last measured steps: the batch whose gradient has as much noise as signal. Signal
/// and noise are averaged apart; a step weighs 0.98 of the next one.
class NoiseScale {
 public:
  struct Estimate {
    double samples = 0;
    double error = 0;  ///< half of the interval that holds 95 of 100, as a share of `samples`
  };

  void add(const GradientNoise& measured);
  /// None: too few steps are measured, or noise hides the signal.
  std::optional<Estimate> estimate() const;

  /// Samples of an infinitely small batch that a step of `batch` samples is worth.
  static double worth(double batch, double noise_scale) {
    return batch * noise_scale / (batch + noise_scale);
  }

 private:
  double ratio(std::size_t left_out_from, std::size_t left_out_to) const;

  std::deque<GradientNoise> last_;  ///< the newest last
};

}  // namespace mindpipe
