#include "app/plan/excluded_layouts.h"

#include <algorithm>
#include <limits>

#include "config/config.h"
#include "core/check.h"
#include "core/text.h"
#include "plan/priced_blocks.h"
#include "plan/search_once.h"
#include "plan/searched_settings.h"
#include "plan/what_would_fit.h"

namespace mindpipe {

using Fate = LayoutCandidate::Fate;

namespace {

/// All settings of a layout that a model of this kind has, but those that are searched for the asking.
SearchFreedom all_of(const Config& config) {
  SearchFreedom all;
  for (const SearchedSetting& setting : searched_settings())
    all.*setting.free = !setting.is_for_the_asking && setting.is_of(config.model);
  return all;
}

/// Layouts that are planned whole at most, to say which needs the least.
constexpr int most_measured = 12;

/// The layout that is too large for the device by the least; null: there is none.
const LayoutCandidate* nearest_of(const Config& config, const LayoutSearch& search) {
  const auto need = [&](const LayoutCandidate& one) { return one.least_need(config.memory.device_limit); };
  const LayoutCandidate* nearest = nullptr;
  for (const LayoutCandidate& one : search.all)
    if (one.fate == Fate::too_large && !one.is_beyond_host && (!nearest || need(one) < need(*nearest)))
      nearest = &one;
  return nearest;
}

/// Plans whole the few layouts that seem to need the least, of which only bounds are known.
void measure_nearest(const Config& config, LayoutSearch& search) {
  for (int tried = 0; tried < most_measured; ++tried) {
    const LayoutCandidate* nearest = nearest_of(config, search);
    if (!nearest || nearest->memory > 0) return;
    simulate_layout(config, search.all[nearest - search.all.data()]);
  }
}

/// Bytes of the host that the layout needs which needs the least of those that are too large for the host.
std::int64_t least_on_host(const LayoutSearch& search) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const LayoutCandidate& one : search.all)
    if (one.is_beyond_host) least = std::min(least, one.host);
  return least;
}

/// Which stage of a layout that was planned whole is too large.
std::string shortage_of(const LayoutCandidate& one) {
  const auto worst = std::max_element(one.over.begin(), one.over.end());
  return fmt::format("its stage {} is short by {}", worst - one.over.begin(),
                     human_bytes(static_cast<double>(*worst)));
}

}  // namespace

std::string excluded_text(const Config& config, const LayoutSearch& search) {
  std::string text = fmt::format(
      "looked at {} layouts: {} simulated, {} cannot be better by a bound, {} need too much memory{}\n",
      search.all.size(), search.count(Fate::simulated), search.count(Fate::slower),
      search.count(Fate::too_large),
      search.count(Fate::refused) > 0 ? fmt::format(", {} are refused", search.count(Fate::refused)) : "");
  const LayoutCandidate* nearest = nearest_of(config, search);
  const auto beyond_host = std::count_if(search.all.begin(), search.all.end(),
                                         [](const LayoutCandidate& one) { return one.is_beyond_host; });
  if (beyond_host > 0)
    text +=
        fmt::format("{} of these need more of the host than memory.host_limit, {}; the least of them {}\n",
                    beyond_host, human_bytes(static_cast<double>(config.memory.host_limit)),
                    human_bytes(static_cast<double>(least_on_host(search))));
  SearchFreedom said = all_of(config);
  said.swap = nearest != nullptr && nearest->layout.swap.any();
  if (nearest)
    text += fmt::format("the least of these is short of {} by {} or more: {}\n",
                        human_bytes(static_cast<double>(config.memory.device_limit)),
                        human_bytes(static_cast<double>(nearest->least_need(config.memory.device_limit) -
                                                        config.memory.device_limit)),
                        words_of(nearest->layout, said));
  const auto refused = std::find_if(search.all.begin(), search.all.end(), [](const LayoutCandidate& one) {
    return one.fate == Fate::refused && !one.refusal.empty();
  });
  if (refused != search.all.end()) text += fmt::format("refused, as: {}\n", refused->refusal);
  for (const auto& [key, refusal] : search.refused)
    text += fmt::format("{} grid{} refused for {}, as: {}\n", refusal.first,
                        refusal.first == 1 ? " is" : "s are", key, refusal.second);
  return text;
}

namespace {

/// The largest smaller micro-batch with which some layout fits.
std::string smaller_micro_batch(Config config, int ranks, const SearchFreedom& free) {
  std::vector<int> smaller = micro_batches_of(config, {.micro_batch = true}, 1);
  std::erase_if(smaller, [&](int samples) { return samples >= config.train.micro_batch; });
  std::sort(smaller.rbegin(), smaller.rend());
  for (const int samples : smaller) {
    config.train.micro_batch = samples;
    PricedBlocks blocks;
    const LayoutSearch search = search_once(config, ranks, free, 1, {}, 0, blocks);
    if (search.best.empty()) continue;
    return fmt::format("with train.micro_batch={} another layout fits: {}; ", samples,
                       words_of(search.all[search.best.front()].layout, free));
  }
  return "";
}

/// Settings that a search could choose, and that are written.
std::string searchable(const SearchFreedom& free) {
  std::vector<std::string> keys;
  for (const auto& [is_free, key] : {std::pair(free.recompute, "train.recompute"),
                                     std::pair(free.swap, "train.swap"), std::pair(free.zero, "train.zero")})
    if (!is_free) keys.emplace_back(key);
  return keys.empty() ? "" : ", or leave " + join(keys, ", ") + " to the search";
}

}  // namespace

void fail_for_want(const Config& config, int ranks, const SearchFreedom& free, const LayoutSearch& search) {
  LayoutSearch known = search;
  measure_nearest(config, known);
  std::string why = excluded_text(config, known);
  const LayoutCandidate* nearest = nearest_of(config, known);
  if (nearest && !row_of(config.model.kind).trains_subnets) {
    if (nearest->memory > 0) why += shortage_of(*nearest) + "; ";
    if (!free.micro_batch) why += smaller_micro_batch(config, ranks, free);
    why += what_would_fit(config, nearest->layout, true) + '\n';
  }
  if (search.count(Fate::too_large) > 0)
    fail(Exit::out_of_memory,
         "memory: no layout of {} ranks fits into memory.device_limit and memory.host_limit; take more "
         "ranks or a smaller train.micro_batch, or place schedule.cuts by hand{}. {}",
         ranks, searchable(free), why);
  fail(Exit::bad_configuration,
       "no layout of {} ranks is allowed with the settings that are written; leave more of them out, or plan "
       "for another number of ranks. {}",
       ranks, why);
}

}  // namespace mindpipe
