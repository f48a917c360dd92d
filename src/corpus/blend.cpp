#include "corpus/blend.h"

#include <algorithm>

#include "core/check.h"

namespace mindpipe {

Blend::Blend(std::vector<double> weights)
    : weights_(std::move(weights)), counts_{std::vector<std::int64_t>(weights_.size(), 0)} {
  double sum = 0;
  for (const double w : weights_) sum += w;
  for (double& w : weights_) w /= sum;
}

void Blend::open(std::int64_t index) {
  std::vector<std::int64_t> counts = counts_[index];
  choices_.resize(page);
  for (std::int64_t i = 0; i < page; ++i) {
    const double n = static_cast<double>(std::max<std::int64_t>(index * page + i, 1));
    int best = 0;
    double most = weights_[0] * n - static_cast<double>(counts[0]);
    for (std::size_t d = 1; d < weights_.size(); ++d) {
      const double lag = weights_[d] * n - static_cast<double>(counts[d]);
      if (lag <= most) continue;
      most = lag;
      best = static_cast<int>(d);
    }
    choices_[i] = {best, counts[best]++};
  }
  if (index + 1 == static_cast<std::int64_t>(counts_.size())) counts_.push_back(std::move(counts));
  open_ = index;
}

Blend::Choice Blend::at(std::int64_t n) {
  MP_CHECK(n >= 0, "sample {} of a blend", n);
  if (weights_.size() == 1) return {0, n};
  const std::int64_t index = n / page;
  while (static_cast<std::int64_t>(counts_.size()) <= index)
    open(static_cast<std::int64_t>(counts_.size()) - 1);
  if (open_ != index) open(index);
  return choices_[n % page];
}

}  // namespace mindpipe
