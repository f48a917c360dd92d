#include <algorithm>

#include "config/config.h"
#include "core/refusal.h"
#include "plan/layout_search.h"
#include "state/layout.h"

namespace mindpipe {

namespace {

constexpr std::ptrdiff_t most_micro_batches = 12;

}  // namespace

std::int64_t LayoutCandidate::least_need(std::int64_t limit) const {
  const std::int64_t most_over = over.empty() ? 0 : *std::max_element(over.begin(), over.end());
  return std::max({memory, least_memory, most_over > 0 ? limit + most_over : 0});
}

double LayoutCandidate::least_cost(const StepPrice& price) const {
  return price.second * static_cast<double>(bound) + price.work * static_cast<double>(least_work);
}

double LayoutCandidate::cost(const StepPrice& price) const {
  return price.second * static_cast<double>(step) + price.work * static_cast<double>(work);
}

LayoutChoice layout_of(const Config& config) {
  return {
      degrees_of(config.grid),  config.schedule.kind,   config.schedule.chunks,         config.schedule.cuts,
      config.train.zero,        config.train.recompute, config.train.sequence_parallel, config.supernet.cuts,
      config.train.micro_batch, config.train.swap};
}

Config with_layout(const Config& config, const LayoutChoice& layout) {
  Config known = config;
  known.grid = {layout.grid.supernet, layout.grid.pipeline, layout.grid.data, layout.grid.tensor};
  const ScheduleRow& row = row_of(layout.schedule);
  known.schedule = {layout.schedule, layout.chunks, layout.cuts,
                    row.has_groups ? config.schedule.groups : MicroBatchGroups{},
                    row.splits_backward ? config.schedule.memory : 0};
  known.train.zero = layout.zero;
  known.train.recompute = layout.recompute;
  known.train.swap = layout.swap;
  known.train.sequence_parallel = layout.sequence_parallel;
  known.supernet.cuts = layout.subnet_cuts;
  if (layout.micro_batch > 0) known.train.micro_batch = layout.micro_batch;
  if (known.reproducible.tensor_follows) known.reproducible.tensor = 0;
  if (known.reproducible.data_follows) known.reproducible.data = 0;
  return resolve(known);
}

std::optional<Config> with_layout_if_allowed(const Config& config, const LayoutChoice& layout) {
  std::optional<Config> known;
  refusal_of([&] { known = with_layout(config, layout); });
  return known;
}

std::vector<int> micro_batches_of(const Config& config, const SearchFreedom& free, int data) {
  const TrainConfig& train = config.train;
  if (!free.micro_batch) return {train.micro_batch};
  const int shards = config.reproducible.data_follows ? data : config.reproducible.data;
  std::vector<int> divisors;
  for (int samples = 1; samples <= train.batch && std::ssize(divisors) < most_micro_batches; ++samples)
    if (std::int64_t{train.batch} % (std::int64_t{samples} * shards) == 0) divisors.push_back(samples);
  return divisors.empty() ? std::vector<int>{1} : divisors;  // one: a rule says that the grid does not fit
}

}  // namespace mindpipe
