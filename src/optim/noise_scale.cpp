#include "optim/noise_scale.h"

#include <cmath>
#include <numeric>
#include <vector>

namespace mindpipe {
namespace {

constexpr double memory = 0.98;
/// Steps that are kept: what is older weighs less than 0.02 of the newest.
constexpr std::size_t most_kept = 200;
/// Groups of steps that follow each other, each left out once; and the value that a t distribution of one
/// degree of freedom less stays within in 95 of 100 cases.
constexpr std::size_t groups = 10;
constexpr double within = 2.262;

}  // namespace

GradientNoise gradient_noise(std::span<const double> squares, double factor, std::int64_t samples) {
  const auto shards = static_cast<double>(squares.size() - 1), square = factor * factor;
  const double of_sum = square * squares.back(),
               mean = square * shards * std::accumulate(squares.begin(), squares.end() - 1, 0.0);
  return {.signal = (shards * of_sum - mean) / (shards - 1),
          .noise = static_cast<double>(samples) * (mean - of_sum) / (shards - 1)};
}

void NoiseScale::add(const GradientNoise& measured) {
  last_.push_back(measured);
  if (last_.size() > most_kept) last_.pop_front();
}

/// Noise over signal, without the steps [left_out_from, left_out_to).
double NoiseScale::ratio(std::size_t left_out_from, std::size_t left_out_to) const {
  double signal = 0, noise = 0, weight = 1;
  for (std::size_t i = last_.size(); i-- > 0; weight *= memory) {
    if (i >= left_out_from && i < left_out_to) continue;
    signal += weight * last_[i].signal;
    noise += weight * last_[i].noise;
  }
  return signal > 0 ? noise / signal : std::nan("");
}

std::optional<NoiseScale::Estimate> NoiseScale::estimate() const {
  const double samples = ratio(0, 0);
  if (last_.size() < groups || !(samples > 0)) return std::nullopt;
  std::vector<double> without;
  for (std::size_t group = 0; group < groups; ++group)
    without.push_back(ratio(group * last_.size() / groups, (group + 1) * last_.size() / groups));
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / groups;
  double squares = 0;
  for (const double one : without) squares += (one - mean) * (one - mean);
  const double error = within * std::sqrt(squares * (groups - 1) / groups) / samples;
  if (!std::isfinite(error)) return std::nullopt;
  return Estimate{samples, error};
}

}  // namespace mindpipe
