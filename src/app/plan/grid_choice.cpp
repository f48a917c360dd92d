#include "app/plan/grid_choice.h"

#include <algorithm>
#include <optional>

#include "app/plan/open_choice.h"
#include "app/run/resume.h"
#include "comm/affinity.h"
#include "config/config.h"
#include "core/check.h"
#include "core/launcher.h"
#include "plan/layout_search.h"
#include "plan/layout_space.h"
#include "plan/memory_limits.h"
#include "plan/run_plan.h"

namespace mindpipe {
namespace {

/// The configuration with these degrees, or a refusal: what every run goes through first.
Config on_grid(const Config& config, const Coord& shape) {
  LayoutChoice layout = layout_of(config);
  layout.grid = shape;
  MP_REQUIRE(shape.supernet == 1 || row_of(config.model.kind).trains_subnets, Exit::bad_configuration,
             "grid.supernet is {}, but a {} is one network (lanes train subnets of a supernet); set it to 1",
             shape.supernet, config.model.kind);
  const Config known = with_layout(config, layout);
  require_grid(known);
  return known;
}

/// Whether a run could have this shape, by the checks that it would meet; memory, which takes plans, at
/// times.
GridFits fits(const Config& config, Purpose purpose) {
  return [config, purpose, plans_left = 12](const Coord& shape) mutable {
    try {
      const Config known = on_grid(config, shape);
      const bool is_limited = known.memory.device_limit > 0 || known.memory.host_limit > 0;
      return !is_limited || (plans_left-- > 0 && is_within(make_run_plan(known, purpose), known.memory));
    } catch (const Error&) {
      return false;
    }
  };
}

/// Grids to take in place of a refused one: others of `ranks` ranks, or else the nearest numbers of ranks
/// that have a grid. Empty if there are none: then the grid is not at fault.
std::string advice_instead(const Coord& wanted, int ranks, const GridFits& fits) {
  if (const std::vector<Coord> others = nearest_grids(wanted, ranks, fits); !others.empty())
    return fmt::format("; grids of {} ranks that fit: {}", ranks, to_string(others));
  constexpr int far = 64;
  std::string near;
  const auto is_one = [&](int number) {
    const std::vector<Coord> grids = nearest_grids(wanted, number, fits, 1);
    if (!grids.empty())
      near += fmt::format("{}{} ({})", near.empty() ? "" : " or ", number, to_string(grids.front()));
    return !grids.empty();
  };
  for (int fewer = ranks - 1; fewer >= std::max(1, ranks - far) && !is_one(fewer);) --fewer;
  for (int more = ranks + 1; more <= ranks + std::min(ranks, far) && !is_one(more);) ++more;
  return near.empty() ? "" : fmt::format("; no grid of {} ranks fits: start {}", ranks, near);
}

/// A configuration as it is for one rank; none where that is refused too.
std::optional<Config> on_one_rank(const std::string& file, std::vector<std::string> overrides) {
  for (const char* degree : {"grid.supernet=1", "grid.pipeline=1", "grid.data=1", "grid.tensor=1"})
    overrides.emplace_back(degree);
  try {
    return read_config(file, overrides);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The grid of the best layout on paper, where several degrees are left to the program; where rules allow
/// none, one with the degrees that are written, which says which.
Coord best_grid(const Config& config, int ranks) {
  const std::vector<std::string> settings = best_settings(config, {}, ranks);
  if (!settings.empty()) return degrees_of(with_settings(config, settings).grid);
  const std::vector<Coord> grids = grids_of(config, ranks, freedom_to_train(config, {}));
  MP_REQUIRE(
      !grids.empty(), Exit::bad_configuration,
      "the degrees of the grid that are written do not divide {} rank{}; start a multiple of {}, or let "
      "them be auto",
      ranks, ranks == 1 ? "" : "s", ranks_of_grid(config));
  return grids.front();
}

Config with_degrees(const Config& config, int ranks, Purpose purpose) {
  const Coord shape = open_degrees(config) > 1
                          ? best_grid(config, ranks)
                          : resolve_grid(degrees_of(config.grid), ranks, fits(config, purpose));
  try {
    return on_grid(config, shape);
  } catch (const Error& error) {
    const std::string advice =
        error.code == Exit::bad_configuration ? advice_instead(shape, ranks, fits(config, purpose)) : "";
    if (advice.empty()) throw;
    fail(error.code, "{}{}", error.what(), advice);
  }
}

}  // namespace

Config read_for_ranks(const std::string& file, const std::vector<std::string>& overrides, int ranks,
                      WrittenKeys& written) {
  try {
    return read_config(file, overrides, written);
  } catch (const Error& error) {
    if (ranks == 0) ranks = launch().ranks;
    if (error.code != Exit::bad_configuration || ranks < 2) throw;
    const std::optional<Config> any = on_one_rank(file, overrides);
    if (!any) throw;
    if (const std::vector<std::string> shards = shards_of_checkpoint(*any); !shards.empty()) {
      std::vector<std::string> known = overrides;
      known.insert(known.end(), shards.begin(), shards.end());
      return read_for_ranks(file, known, ranks, written);
    }
    const std::string advice = advice_instead(degrees_of(any->grid), ranks, fits(*any, Purpose::training));
    if (advice.empty()) throw;
    fail(error.code, "{}{}", error.what(), advice);
  }
}

Config with_grid(const Config& config, int ranks) { return with_degrees(config, ranks, Purpose::training); }

Config with_any_grid(const Config& given, int ranks) {
  Config config = given;
  ReproducibleConfig& shards = config.reproducible;
  shards = {std::max({1, shards.tensor, config.grid.tensor}), std::max({1, shards.data, config.grid.data})};
  Coord wanted = degrees_of(config.grid);
  for (Axis axis : axes) wanted[axis] = std::max(1, wanted[axis]);
  if (num_ranks(wanted) == ranks) return with_degrees(config, ranks, Purpose::reading);
  config.schedule.chunks = 1;  // both divide training's work
  config.schedule.cuts.clear();
  config.schedule.groups = {};
  if (!row_of(config.schedule.kind).of_subnets) config.schedule.kind = ScheduleConfig{}.kind;
  const std::vector<Coord> nearest = nearest_grids(wanted, ranks, fits(config, Purpose::reading), 1);
  MP_REQUIRE(!nearest.empty(), Exit::bad_configuration,
             "no grid of {} ranks fits this model, this batch and its logical shards (reproducible); start "
             "another number of ranks, one for instance",
             ranks);
  return on_grid(config, nearest.front());
}

int ranks_of_grid(const Config& config) {
  const GridConfig& g = config.grid;
  return std::max(1, g.supernet) * std::max(1, g.pipeline) * std::max(1, g.data) * std::max(1, g.tensor);
}

Config on_paper(const Config& config, int ranks, const std::set<std::string>& open) {
  Config known =
      with_grid(open.empty() ? config : with_settings(config, best_settings(config, open, ranks)), ranks);
  known.device.threads = threads_on_paper(known, ranks);
  return known;
}

int threads_on_paper(const Config& config, int ranks) {
  const std::vector<RankPlace> places(std::min(ranks, 1024), place_of_this_rank(1));
  return config.device.threads == 0 ? fair_threads(places, 0) : config.device.threads;
}

}  // namespace mindpipe
