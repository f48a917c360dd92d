#include "plan/operation_counts.h"

#include <algorithm>
#include <numeric>

#include "config/config.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}
/// A model on paper all of whose logical tensor shards are one rank's.
CostModel on_one_tensor_rank(Config config) {
  config.grid.tensor = 1;
  return {config, make_layout(config, {})};
}

}  // namespace

double operations_of(const Config& config) {
  CostModel whole = on_one_tensor_rank(config);
  return sum_of(whole.operations_of_blocks()) /
         static_cast<double>(config.train.micro_batch * whole.model().counted().of_sample);
}

TimeByKind time_by_kind(const Config& config) {
  TimeByKind time;
  const double launch = description_of(config).launch;
  CostModel(config, make_layout(config, {})).passes().each_operation([&](const PricingBackend::Asked& asked) {
    time.launches += asked.kernels * launch;
    (asked.product != nullptr ? time.products
     : asked.is_attention()   ? time.attention
                              : time.memory) += asked.seconds;
  });
  return time;
}

/// A rank of t does a t-th of what is divided, and all of the rest.
UndividedShares undivided_shares(const Config& config) {
  CostModel ours(config, make_layout(config, {})), whole = on_one_tensor_rank(config);
  const std::vector<double> rank = ours.operations_of_blocks(), all = whole.operations_of_blocks();
  const double t = config.grid.tensor;
  const auto share = [&](double own, double together) {
    return t > 1 && together > 0 ? std::max(0.0, (t * own - together) / ((t - 1) * together)) : 0;
  };
  UndividedShares shares;
  for (std::size_t i = 0; i < all.size(); ++i)
    shares.of_blocks.emplace_back(ours.model().blocks()[i].name, share(rank[i], all[i]));
  shares.of_model = share(sum_of(rank), sum_of(all));
  return shares;
}

}  // namespace mindpipe
