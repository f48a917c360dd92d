#include "app/verbs/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "config/sections/generate.h"
#include "core/check.h"
#include "core/portable_math.h"

namespace mindpipe {

std::optional<float> unfit_to_draw(const std::vector<float>& logits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto unfit = std::find_if(logits.begin(), logits.end(),
                                  [](float logit) { return std::isnan(logit) || logit == infinity; });
  if (unfit != logits.end()) return *unfit;
  const bool none_can_be =
      std::all_of(logits.begin(), logits.end(), [](float logit) { return logit == -infinity; });
  return none_can_be ? std::optional(-infinity) : std::nullopt;
}

std::int32_t sample_token(const std::vector<float>& logits, const GenerateConfig& rule,
                          const RandomStream& stream, std::int64_t position) {
  MP_CHECK(!unfit_to_draw(logits), "a token is to be drawn from logits that are not finite");
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
  if (rule.temperature == 0) return order[0];
  if (rule.top_k > 0) order.resize(std::min<std::size_t>(order.size(), rule.top_k));
  std::vector<double> weight;
  for (std::int32_t id : order)
    weight.push_back(portable::exp((static_cast<double>(logits[id]) - logits[order[0]]) / rule.temperature));
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  std::size_t kept = 0;
  double mass = 0;
  while (kept < weight.size() && (kept == 0 || mass < rule.top_p * all)) mass += weight[kept++];
  double left = stream.uniform(position) * mass;
  for (std::size_t i = 0; i < kept; ++i)
    if ((left -= weight[i]) <= 0) return order[i];
  return order[kept - 1];
}

}  // namespace mindpipe
