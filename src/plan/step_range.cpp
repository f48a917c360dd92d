#include "plan/step_range.h"

#include <cmath>

#include "config/config.h"

namespace mindpipe {
namespace {

/// How far nine of ten steps may be off their plans, as shares of these: with prices of a description, as
/// nine of ten of 1,440 published steps are 20 % off at most; with those of a profile, and of emulated ranks,
/// as make bench-plan asks.
constexpr double off_described = 0.22, off_profiled = 0.08, off_emulated = 0.02;
/// Nine of ten measured times lie within so many times the half of their middle half.
constexpr double nine_of_ten = 2.44;

double half_width(const Config& config, const RunPlan& plan) {
  if (!row_of(config.device.kind).computes) return off_emulated;
  if (config.device.profile.empty()) return off_described;
  const double measured = std::hypot(off_profiled, nine_of_ten * plan.known.scatter);
  return (1 - plan.known.estimated) * measured + plan.known.estimated * off_described;
}

}  // namespace

StepRange range_of(const Config& config, const RunPlan& plan) {
  const auto step = static_cast<double>(plan.expected().step);
  const double width = half_width(config, plan);
  return {std::llround(step * (1 - width)), std::llround(step * (1 + width))};
}

}  // namespace mindpipe
