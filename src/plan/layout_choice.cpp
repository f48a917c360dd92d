#include "core/check.h"
#include "core/text.h"
#include "plan/layout_search.h"
#include "state/layout.h"

namespace mindpipe {

namespace {

constexpr std::ptrdiff_t most_micro_batches = 12;

}  // namespace

double LayoutCandidate::least_cost(const StepPrice& price) const {
  return price.second * static_cast<double>(bound) + price.work * static_cast<double>(least_work);
}

double LayoutCandidate::cost(const StepPrice& price) const {
  return price.second * static_cast<double>(step) + price.work * static_cast<double>(work);
}

LayoutChoice layout_of(const Config& config) {
  return {
      degrees_of(config),       config.schedule.kind,   config.schedule.chunks,         config.schedule.cuts,
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
  try {
    return with_layout(config, layout);
  } catch (const Error& error) {
    if (error.code == Exit::internal) throw;
    return {};
  }
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

std::vector<std::string> settings_with(const LayoutChoice& layout, const SearchFreedom& free) {
  std::vector<std::string> words;
  const auto say = [&](bool is_free, const char* key, const auto& value) {
    if (is_free) words.push_back(fmt::format("{}={}", key, value));
  };
  say(free.supernet, "grid.supernet", layout.grid.supernet);
  say(free.pipeline, "grid.pipeline", layout.grid.pipeline);
  say(free.data, "grid.data", layout.grid.data);
  say(free.tensor, "grid.tensor", layout.grid.tensor);
  say(free.schedule, "schedule.kind", layout.schedule);
  say(free.chunks && layout.chunks > 1, "schedule.chunks", layout.chunks);
  say((free.cuts || free.swap || free.recompute) && !layout.cuts.empty(), "schedule.cuts",
      "[" + joined(layout.cuts) + "]");
  say(free.zero && layout.grid.data > 1, "train.zero", layout.zero);
  say(free.recompute, "train.recompute", layout.recompute.text());
  say(free.swap, "train.swap", layout.swap.text());
  say(free.sequence_parallel && layout.grid.tensor > 1, "train.sequence_parallel", layout.sequence_parallel);
  say(free.subnet_cuts, "supernet.cuts", layout.subnet_cuts);
  say(free.micro_batch, "train.micro_batch", layout.micro_batch);
  return words;
}

std::string words_of(const LayoutChoice& layout, const SearchFreedom& free) {
  return join(settings_with(layout, free), " ");
}

}  // namespace mindpipe
