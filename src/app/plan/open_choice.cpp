#include "app/plan/open_choice.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include "app/plan/excluded_layouts.h"
#include "app/plan/plan_comparison.h"
#include "app/plan/tapes_text.h"
#include "comm/text_of_rank_0.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "state/layout.h"

namespace mindpipe {
namespace {

using IsOpen = std::function<bool(const char* key)>;

SearchFreedom freedom_in(const Config& config, const IsOpen& is_open) {
  SearchFreedom free;
  free.pipeline = config.grid.pipeline == 0 || is_open("grid.pipeline");
  free.data = config.grid.data == 0 || is_open("grid.data");
  free.tensor = config.grid.tensor == 0 || is_open("grid.tensor");
  if (row_of(config.model.kind).trains_subnets) {
    free.supernet = config.grid.supernet == 0 || is_open("grid.supernet");
    free.subnet_cuts = is_open("supernet.cuts");
    return free;
  }
  free.schedule = is_open("schedule.kind");
  free.chunks = is_open("schedule.chunks");
  free.cuts = is_open("schedule.cuts");
  free.zero = is_open("train.zero");
  free.recompute = is_open("train.recompute");
  free.sequence_parallel = is_open("train.sequence_parallel");
  return free;
}

/// Refuses open settings that no search chooses for a supernet.
void require_searched(const Config& config, const std::set<std::string>& open) {
  if (!row_of(config.model.kind).trains_subnets) return;
  for (const std::string& key : open)
    MP_REQUIRE(key == "supernet.cuts", Exit::bad_configuration,
               "{} is auto, and of a {} only degrees of the grid and supernet.cuts are searched (write a "
               "value)",
               key, config.model.kind);
}

/// Groups of micro-batches as settings, where the layout has some.
void add_groups(std::vector<std::string>& settings, const LayoutCandidate& best) {
  if (best.groups.empty()) return;
  settings.push_back(fmt::format("schedule.groups.forward=[{}]", joined(best.groups.forward)));
  settings.push_back(fmt::format("schedule.groups.backward=[{}]", joined(best.groups.backward)));
}

}  // namespace

SearchFreedom freedom_of(const Config& config, const WrittenKeys& written) {
  require_searched(config, written.open);
  SearchFreedom free = freedom_in(config, [&](const std::string& key) {
    return written.named.count(key) == 0 || written.open.count(key) > 0;
  });
  free.micro_batch = written.open.count("train.micro_batch") > 0;
  free.swap = written.open.count("train.swap") > 0 && !config.repartition.moves();
  return free;
}

SearchFreedom freedom_to_train(const Config& config, const std::set<std::string>& open) {
  require_searched(config, open);
  SearchFreedom free = freedom_in(config, [&](const std::string& key) { return open.count(key) > 0; });
  free.micro_batch = open.count("train.micro_batch") > 0;
  free.swap = open.count("train.swap") > 0 && !config.repartition.moves();
  return free;
}

int open_degrees(const Config& config) {
  const Coord degrees = degrees_of(config);
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

std::vector<std::string> best_settings(const Config& given, const std::set<std::string>& open, int ranks) {
  Config config = given;
  const bool chooses_batch = open.count("plan.batches") > 0;
  config.plan.batches.clear();  // a list of them is for plan --search alone
  take_open_batches(config, open);
  const SearchFreedom free = freedom_to_train(config, open);
  const PlanGoal goal(config);
  const std::vector<ComparedPlan> plans = compare_plans(config, ranks, 0, goal, free, 1);
  const int best = best_plan(plans, goal);
  if (best < 0) {
    const LayoutSearch& last = plans.back().search;
    if (open.empty() && last.count(LayoutCandidate::Fate::too_large) == 0) return {};
    fail_for_want(plans.back().config, ranks, last);
  }
  const ComparedPlan& chosen = plans[best];
  std::vector<std::string> settings = settings_with(chosen.best().layout, free);
  add_groups(settings, chosen.best());
  if (chooses_batch) settings.push_back(fmt::format("train.batch={}", chosen.size.batch));
  return settings;
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
  const SearchFreedom free = freedom_to_train(config, open);
  if (world.rank == 0 && (free.swap || free.recompute)) {
    const RunPlan plan = make_run_plan(chosen);
    std::string text = binding_text(config, plan) + tapes_text(config, plan, layout_of(chosen), free);
    text.pop_back();
    info("{}", text);
  }
  return chosen;
}

}  // namespace mindpipe
