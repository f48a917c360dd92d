#include "app/plan/excluded_layouts.h"

#include <algorithm>

#include "core/check.h"
#include "core/text.h"

namespace mindpipe {

using Fate = LayoutCandidate::Fate;

namespace {

/// All settings of a layout that a model of this kind has.
SearchFreedom all_of(const Config& config) {
  SearchFreedom all{.pipeline = true, .data = true, .tensor = true};
  if (row_of(config.model.kind).trains_subnets) all.supernet = all.subnet_cuts = true;
  else all.schedule = all.chunks = all.zero = all.recompute = all.sequence_parallel = true;
  return all;
}

}  // namespace

std::string excluded_text(const Config& config, const LayoutSearch& search) {
  std::string text = fmt::format(
      "looked at {} layouts: {} simulated, {} cannot be better by a bound, {} need too much memory{}\n",
      search.all.size(), search.count(Fate::simulated), search.count(Fate::slower),
      search.count(Fate::too_large),
      search.count(Fate::refused) > 0 ? fmt::format(", {} are refused", search.count(Fate::refused)) : "");
  const LayoutCandidate* nearest = nullptr;
  const auto need = [](const LayoutCandidate& one) { return std::max(one.memory, one.least_memory); };
  for (const LayoutCandidate& one : search.all)
    if (one.fate == Fate::too_large && !one.is_beyond_host && (!nearest || need(one) < need(*nearest)))
      nearest = &one;
  const auto beyond_host = std::count_if(search.all.begin(), search.all.end(),
                                         [](const LayoutCandidate& one) { return one.is_beyond_host; });
  if (beyond_host > 0)
    text += fmt::format("{} of these need more of the host than memory.host_limit, {}\n", beyond_host,
                        human_bytes(static_cast<double>(config.memory.host_limit)));
  SearchFreedom said = all_of(config);
  said.swap = nearest != nullptr && nearest->layout.swap.any();
  if (nearest)
    text += fmt::format("the least of these is short of {} by {} or more: {}\n",
                        human_bytes(static_cast<double>(config.memory.device_limit)),
                        human_bytes(static_cast<double>(need(*nearest) - config.memory.device_limit)),
                        words_of(nearest->layout, said));
  for (const auto& [key, refusal] : search.refused)
    text += fmt::format("{} grid{} refused for {}, as: {}\n", refusal.first,
                        refusal.first == 1 ? " is" : "s are", key, refusal.second);
  return text;
}

void fail_for_want(const Config& config, int ranks, const LayoutSearch& search) {
  const std::string why = excluded_text(config, search);
  if (search.count(Fate::too_large) > 0)
    fail(Exit::out_of_memory,
         "memory: no layout of {} ranks fits into memory.device_limit and memory.host_limit; take more "
         "ranks or a smaller train.micro_batch, place schedule.cuts by hand, or leave train.recompute, "
         "train.swap and train.zero to the search. {}",
         ranks, why);
  fail(Exit::bad_configuration,
       "no layout of {} ranks is allowed with the settings that are written; leave more of them out, or plan "
       "for another number of ranks. {}",
       ranks, why);
}

}  // namespace mindpipe
