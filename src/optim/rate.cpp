#include "optim/rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/kinds.h"
#include "config/sections/optimizer.h"
#include "core/portable_math.h"

namespace mindpipe {

double rate_at(const RateConfig& rule, std::int64_t step, std::int64_t steps) {
  if (step < rule.warmup) return rule.peak * static_cast<double>(step + 1) / rule.warmup;
  if (rule.kind == RateKind::constant) return rule.peak;
  if (rule.kind == RateKind::steps) {
    const auto drops = std::upper_bound(rule.drops.begin(), rule.drops.end(), step) - rule.drops.begin();
    return std::max(rule.floor, rule.peak * portable::pow(rule.drop_factor, static_cast<double>(drops)));
  }
  if (rule.kind == RateKind::inverse_sqrt)
    return std::max(rule.floor,
                    rule.peak * std::sqrt(std::max(rule.warmup, 1) / static_cast<double>(step + 1)));
  const bool wsd = rule.kind == RateKind::wsd;
  const std::int64_t end = wsd || rule.decay == 0 ? steps : rule.decay;
  const std::int64_t start = wsd ? steps - rule.decay : rule.warmup;
  if (end <= start) return step < end ? rule.peak : rule.floor;
  const double progress =
      std::clamp(static_cast<double>(step - start) / static_cast<double>(end - start), 0.0, 1.0);
  const double height =
      rule.kind == RateKind::cosine ? 0.5 * (1 + portable::cos(std::numbers::pi * progress)) : 1 - progress;
  return rule.floor + (rule.peak - rule.floor) * height;
}

}  // namespace mindpipe
