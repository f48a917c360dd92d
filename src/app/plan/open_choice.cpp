#include "app/plan/open_choice.h"

#include <algorithm>
#include <sstream>

#include "app/plan/excluded_layouts.h"
#include "app/plan/plan_comparison.h"
#include "app/plan/tapes_text.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "config/models/prices.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "plan/searched_settings.h"
#include "state/layout.h"

namespace mindpipe {
namespace {

/// Refuses open settings that no search chooses for a supernet.
void require_searched(const Config& config, const std::set<std::string>& open) {
  if (!row_of(config.model.kind).trains_subnets) return;
  for (const std::string& key : open)
    MP_REQUIRE(
        std::ranges::any_of(
            searched_settings(),
            [&](const SearchedSetting& one) { return one.key == key && one.is_of(config.model); }),
        Exit::bad_configuration,
        "{} is auto, and of a {} only degrees of the grid, supernet.cuts and train.micro_batch are searched "
        "(write a value)",
        key, config.model.kind);
  MP_REQUIRE(open.count("train.micro_batch") == 0 || !prices_of(config), Exit::bad_configuration,
             "train.micro_batch is auto, but supernet.prices = {} has the prices of one size of micro-batch "
             "(write a value, or leave supernet.prices out)",
             config.supernet.prices);
}

/// What a search may choose of the settings that `may_be_chosen`, and of those left open.
template <class MayBeChosen>
SearchFreedom freedom(const Config& config, const std::set<std::string>& open, MayBeChosen may_be_chosen) {
  require_searched(config, open);
  SearchFreedom free;
  for (const SearchedSetting& setting : searched_settings()) {
    const bool is_open = open.count(setting.key) > 0;
    free.*setting.free = setting.is_of(config.model) &&
                         (is_open || (!setting.is_for_the_asking && may_be_chosen(setting.key)));
  }
  for (const auto& [axis, degree] : {std::pair(&SearchFreedom::supernet, config.grid.supernet),
                                     std::pair(&SearchFreedom::pipeline, config.grid.pipeline),
                                     std::pair(&SearchFreedom::data, config.grid.data),
                                     std::pair(&SearchFreedom::tensor, config.grid.tensor)})
    free.*axis |= degree == 0;
  return free;
}

/// Groups of micro-batches as settings, where the layout has some.
void add_groups(std::vector<std::string>& settings, const LayoutCandidate& best) {
  if (best.groups.empty()) return;
  settings.push_back(fmt::format("schedule.groups.forward=[{}]", joined(best.groups.forward)));
  settings.push_back(fmt::format("schedule.groups.backward=[{}]", joined(best.groups.backward)));
}

}  // namespace

SearchFreedom freedom_of(const Config& config, const WrittenKeys& written) {
  return freedom(config, written.open, [&](const char* key) { return written.named.count(key) == 0; });
}

SearchFreedom freedom_to_train(const Config& config, const std::set<std::string>& open) {
  return freedom(config, open, [](const char*) { return false; });
}

int open_degrees(const Config& config) {
  const Coord degrees = degrees_of(config.grid);
  return static_cast<int>(
      std::count_if(axes.begin(), axes.end(), [&](Axis axis) { return degrees[axis] == 0; }));
}

bool is_searched(const Config& config, const std::set<std::string>& open) {
  return !open.empty() || open_degrees(config) > 1;
}

void take_open_batches(Config& config, const std::set<std::string>& open) {
  if (open.count("plan.batches") == 0) return;
  const int batch = config.train.batch;
  config.plan.batches.clear();
  for (const int part : {4, 2})
    if (batch % part == 0) config.plan.batches.push_back(batch / part);
  for (const int times : {1, 2, 4}) config.plan.batches.push_back(batch * times);
}

namespace {

/// The plans of what is left open, the place of the best among them (-1: nothing fits, or is allowed), and
/// what makes the configuration that.
struct OpenSearch {
  std::vector<ComparedPlan> plans;
  int best = -1;
  std::vector<std::string> settings;
};

OpenSearch search_open(const Config& given, const std::set<std::string>& open, int ranks) {
  Config config = given;
  const bool chooses_batch = open.count("plan.batches") > 0;
  config.plan.batches.clear();  // a list of them is for plan --search alone
  take_open_batches(config, open);
  const SearchFreedom free = freedom_to_train(config, open);
  const PlanGoal goal(config);
  OpenSearch search{.plans = compare_plans(config, ranks, 0, goal, free, 1)};
  search.best = best_plan(search.plans, goal);
  if (search.best < 0) return search;
  const ComparedPlan& chosen = search.plans[search.best];
  search.settings = settings_with(chosen.best().layout, free);
  add_groups(search.settings, chosen.best());
  if (chooses_batch) search.settings.push_back(fmt::format("train.batch={}", chosen.size.batch));
  return search;
}

}  // namespace

std::vector<std::string> best_settings(const Config& given, const std::set<std::string>& open, int ranks) {
  const OpenSearch search = search_open(given, open, ranks);
  if (search.best >= 0) return search.settings;
  const ComparedPlan& last = search.plans.back();
  if (open.empty() && last.search.count(LayoutCandidate::Fate::too_large) == 0) return {};
  fail_for_want(last.config, ranks, freedom_to_train(last.config, open), last.search);
}

OpenSettings open_settings(const Config& given, const std::set<std::string>& open, int ranks) {
  OpenSettings all{.keys = open,
                   .groups = given.schedule.groups,
                   .cuts = given.schedule.cuts,
                   .recompute = given.train.recompute,
                   .swap = given.train.swap};
  const Coord degrees = degrees_of(given.grid);
  for (const Axis axis : axes)
    if (degrees[axis] == 0) all.keys.insert(fmt::format("grid.{}", name_of(axis)));
  std::set<std::string> tapes;
  for (const SearchedSetting& setting : searched_settings())
    if (setting.is_of_tapes() && open.contains(setting.key)) tapes.insert(setting.key);
  if (!tapes.empty())
    all.choose_tapes = [tapes, ranks](const Config& changed) -> std::optional<Config> {
      const OpenSearch search = search_open(changed, tapes, ranks);
      if (search.best < 0) return {};
      return with_settings(changed, search.settings);
    };
  return all;
}

bool chooses_tapes(const Config& given, const std::set<std::string>& open) {
  const SearchFreedom free = freedom_to_train(given, open);
  return free.swap || free.recompute;
}

std::string tapes_chosen(const Config& given, const Config& chosen, const RunPlan& plan,
                         const std::set<std::string>& open) {
  const SearchFreedom free = freedom_to_train(given, open);
  if (!chooses_tapes(given, open)) return "";
  return binding_text(given, plan) + tapes_text(given, plan, layout_of(chosen), free);
}

Config with_best_settings(const Config& config, const std::set<std::string>& open, const World& world) {
  if (!is_searched(config, open)) return config;
  const std::int64_t begin = now_ns();
  const std::string found = text_of_rank_0(
      world, world.rank == 0 ? join(best_settings(config, open, world.size), "\n") : std::string());
  if (found.empty()) return config;
  std::vector<std::string> settings;
  std::istringstream lines(found);
  for (std::string line; std::getline(lines, line);) settings.push_back(line);
  if (world.rank == 0)
    info("the best on paper for {} ranks, found in {}: {}", world.size, human_seconds(seconds_since(begin)),
         join(settings, " "));
  const Config chosen = with_settings(config, settings);
  if (world.rank == 0 && chooses_tapes(config, open)) {
    std::string text = tapes_chosen(config, chosen, make_run_plan(chosen), open);
    text.pop_back();
    info("{}", text);
  }
  return chosen;
}

}  // namespace mindpipe
