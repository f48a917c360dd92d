#include "plan/layout_space.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/config.h"

namespace mindpipe {
namespace {

constexpr int chunks_tried[] = {2, 4, 8};

/// What the layouts to choose from have of one setting.
template <class T, class All>
std::vector<T> values(bool free, T given, const All& all) {
  return free ? std::vector<T>(std::begin(all), std::end(all)) : std::vector<T>{given};
}

/// A schedule and its chunks.
using ScheduleShape = std::pair<ScheduleKind, int>;

std::vector<ScheduleShape> shapes_of(const Config& config, int stages, const SearchFreedom& free) {
  std::vector<ScheduleShape> shapes;
  for (const ScheduleKind kind : values(free.schedule, config.schedule.kind, all_kinds<ScheduleKind>())) {
    const ScheduleRow& row = row_of(kind);
    const bool has_groups = !config.schedule.groups.empty(), loses_groups = has_groups && !row.has_groups;
    const bool is_alone = stages == 1 && kind != ScheduleKind::one_forward_one_backward && !has_groups;
    const bool is_dear = kind == ScheduleKind::searched;
    if (free.schedule && (row.of_subnets || is_alone || is_dear || loses_groups)) continue;
    if (!row.has_chunks) {
      if (free.chunks || config.schedule.chunks == 1 || row.may_have(config.schedule.chunks))
        shapes.emplace_back(kind, row.chunks());
      continue;
    }
    for (const int chunks : values(free.chunks, config.schedule.chunks, chunks_tried))
      shapes.emplace_back(kind, chunks);
  }
  return shapes;
}

}  // namespace

std::vector<Coord> grids_of(const Config& config, int ranks, const SearchFreedom& free) {
  const GridConfig& given = config.grid;
  const auto may_be = [](bool is_free, int said, int degree) { return is_free || said == degree; };
  std::vector<Coord> grids;
  for (int lanes = 1; lanes <= ranks; ++lanes) {
    const int places = ranks / lanes;
    if (ranks % lanes != 0 || !may_be(free.supernet, std::max(1, given.supernet), lanes)) continue;
    for (int tensor = 1; tensor <= places; ++tensor)
      for (int data = 1; places % tensor == 0 && data <= places / tensor; ++data) {
        if (places / tensor % data != 0) continue;
        const int pipeline = places / tensor / data;
        if (may_be(free.tensor, given.tensor, tensor) && may_be(free.data, given.data, data) &&
            may_be(free.pipeline, given.pipeline, pipeline))
          grids.push_back({tensor, data, pipeline, lanes});
      }
  }
  return grids;
}

std::vector<LayoutChoice> layouts_of(const Config& config, const Coord& grid, const SearchFreedom& free) {
  const TrainConfig& train = config.train;
  std::vector<LayoutChoice> all;
  for (const auto& [schedule, chunks] : shapes_of(config, grid.pipeline, free))
    for (const int zero : values(free.zero && grid.data > 1, free.zero ? 0 : train.zero, std::array{0, 1, 2}))
      for (const ChosenBlocks& recompute : values(free.recompute, train.recompute, all_kinds<WhichBlocks>()))
        for (const bool shared :
             values(free.sequence_parallel && grid.tensor > 1,
                    free.sequence_parallel ? false : train.sequence_parallel, std::array{false, true}))
          for (const SubnetCuts subnet_cuts :
               values(free.subnet_cuts && grid.pipeline > 1,
                      free.subnet_cuts ? SubnetCuts::home : config.supernet.cuts, all_kinds<SubnetCuts>()))
            for (const int samples : micro_batches_of(config, free, grid.data))
              all.push_back({grid, schedule, chunks, free.cuts ? std::vector<int>{} : config.schedule.cuts,
                             zero, recompute, shared, subnet_cuts, samples,
                             free.swap ? ChosenBlocks{} : train.swap});
  return all;
}

std::vector<LayoutChoice> with_other_schedules(const LayoutChoice& now) {
  std::vector<LayoutChoice> layouts;
  for (const ScheduleKind kind : all_kinds<ScheduleKind>())
    for (const int chunks : {1, 2, 4}) {
      const ScheduleRow& row = row_of(kind);
      const bool is_asked = row.has_chunks ? chunks > 1 : chunks == row.chunks();
      if (row.of_subnets || kind == ScheduleKind::gpipe || !is_asked) continue;
      LayoutChoice layout = now;
      layout.schedule = kind;
      layout.chunks = chunks;
      if (chunks != now.chunks) layout.cuts.clear();
      layouts.push_back(layout);
    }
  return layouts;
}

std::vector<LayoutChoice> layouts_with_prices(const Config& config, int ranks, const SearchFreedom& free) {
  std::vector<LayoutChoice> layouts;
  for (int tensor = 1; tensor <= ranks; ++tensor) {
    if (ranks % tensor != 0 || (!free.tensor && tensor != std::max(1, config.grid.tensor))) continue;
    for (const bool shared : {false, true})
      for (const WhichBlocks recompute : all_kinds<WhichBlocks>())
        for (const ScheduleKind schedule :
             {ScheduleKind::one_forward_one_backward, ScheduleKind::zero_bubble}) {
          const bool splits = row_of(schedule).splits_backward;
          if ((shared && tensor == 1) ||
              (!free.sequence_parallel && shared != config.train.sequence_parallel) ||
              (!free.recompute && !config.train.recompute.are_some() &&
               recompute != config.train.recompute) ||
              (!free.schedule && splits != row_of(config.schedule.kind).splits_backward))
            continue;
          for (const int samples : micro_batches_of(config, free))
            layouts.push_back({.grid = {tensor, 1, 1, 1},
                               .schedule = schedule,
                               .recompute = recompute,
                               .sequence_parallel = shared,
                               .micro_batch = samples});
        }
  }
  return layouts;
}

}  // namespace mindpipe
