#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "covering.h"
#include "runtime/parity.h"

namespace mindpipe {

/// One layout and one arithmetic: an option of each dimension.
enum Dimension {
  grid_at,
  schedule_at,
  style_at,
  precision_at,
  zero_at,
  sequence_at,
  tapes_at,
  shards_at,
  cuts_at,
  accumulation_at,
  optimizer_at,
  dimensions
};
using Choice = std::array<int, dimensions>;

inline constexpr std::array schedules{ScheduleKind::gpipe,         ScheduleKind::one_forward_one_backward,
                                      ScheduleKind::interleaved,   ScheduleKind::breadth_first,
                                      ScheduleKind::zero_bubble,   ScheduleKind::elastic,
                                      ScheduleKind::zero_bubble_v, ScheduleKind::half_v,
                                      ScheduleKind::dual_pipe_v,   ScheduleKind::searched};
/// Schedules that golden hashes know stand first.
inline constexpr int first_schedules = 5;

/// All grids of so many ranks, axes up to 8.
inline const std::vector<GridConfig>& grids_of(int ranks) {
  static std::map<int, std::vector<GridConfig>> known;
  const auto [found, is_new] = known.try_emplace(ranks);
  std::vector<GridConfig>& grids = found->second;
  if (!is_new) return grids;
  for (int p = 1; p <= 8; ++p)
    for (int d = 1; d <= 8; ++d)
      for (int t = 1; t <= 8; ++t)
        if (p * d * t == ranks) grids.push_back({1, p, d, t});
  return grids;
}

/// Ways to cut an axis into logical shards: those that golden hashes know, and all.
inline constexpr int first_shardings = 3, shardings = 4;

/// What becomes of tapes: kept, made again, swapped. Golden hashes know the first two.
inline constexpr int first_tapes = 2, tapes = 3;

/// How many options each dimension has, with models of the first styles only if so many are named.
inline Choice options_of(int ranks, int first_styles = style_count, int first_of_shardings = first_shardings,
                         int first_of_schedules = static_cast<int>(schedules.size()),
                         int first_of_tapes = tapes) {
  return {static_cast<int>(grids_of(ranks).size()),
          first_of_schedules,
          first_styles,
          2,
          3,
          2,
          first_of_tapes,
          first_of_shardings,
          2,
          2,
          2};
}

/// Logical shards of an axis of this degree: as many, twice as many, three, or three on each rank, which are
/// no whole subtree of their sums.
inline int logical_shards(int degree, int option) {
  return option == 0 ? degree : option == 1 ? 2 * degree : option == 2 ? 3 : 3 * degree;
}

/// Whether the choice's schedule has as many stages as it takes: a V has two or more.
inline bool has_stages(const Choice& choice, int ranks) {
  return grids_of(ranks)[choice[grid_at]].pipeline > 1 || !row_of(schedules[choice[schedule_at]]).in_v;
}

inline bool is_possible(const Choice& choice, int ranks) {
  if (!has_stages(choice, ranks)) return false;
  const GridConfig grid = grids_of(ranks)[choice[grid_at]];
  const int option = choice[shards_at];
  for (const auto& [degree, most] :
       {std::pair{grid.tensor, 8}, {grid.data, option < first_shardings ? 8 : 12}}) {
    const int logical = logical_shards(degree, option);
    if (logical > most || !can_share(logical, degree)) return false;
  }
  return true;
}

/// Groups as uneven as a rank's micro-batches allow: small ones of forwards first, of backwards last.
inline MicroBatchGroups groups_of(const Config& c) {
  const int stages = c.grid.pipeline, all = c.train.batch / (c.train.micro_batch * c.grid.data);
  if (all < 2 * stages) return {{all}, {all}};
  return {{stages, all - stages}, {all - stages, stages}};
}

/// Every other one of the blocks that can be computed again, from the first or the second of them on.
inline ChosenBlocks every_other_block(const Config& given, std::size_t from = 0) {
  Config c = given;
  c.train.recompute = c.train.swap = WhichBlocks::none;
  c = resolve(c);
  CostModel costs(c, make_layout(c, {}));
  std::vector<int> can, numbers;
  for (int block = 0; block < static_cast<int>(costs.model().blocks().size()); ++block)
    if (costs.model().blocks()[block].layer->can_be_recomputed()) can.push_back(block);
  for (std::size_t i = from; i < can.size(); i += 2) numbers.push_back(can[i]);
  return ChosenBlocks(numbers);
}

/// The configuration of a choice. Stages are uneven by hand where cuts_at says so: every chunk but the last
/// is one block.
inline Config config_of(const Choice& choice, int ranks) {
  const GridConfig grid = grids_of(ranks)[choice[grid_at]];
  const auto schedule = schedules[choice[schedule_at]];
  const int chunks = row_of(schedule).has_chunks ? 2 : row_of(schedule).chunks(),
            all = grid.pipeline * chunks;
  Config c = tiny(static_cast<Style>(choice[style_at]), logical_shards(grid.tensor, choice[shards_at]),
                  logical_shards(grid.data, choice[shards_at]), choice[accumulation_at] == 0 ? 1 : 3,
                  std::max(8, all));
  c.grid = grid;
  c.schedule.kind = schedule;
  c.schedule.chunks = chunks;
  if (row_of(schedule).has_groups) c.schedule.groups = groups_of(c);
  if (choice[cuts_at] == 1)
    for (int i = 1; i < all; ++i) c.schedule.cuts.push_back(i);
  c.train.precision = choice[precision_at] == 0 ? Precision::f32 : Precision::bf16;
  if (c.device.kind == DeviceKind::cuda && c.train.precision == Precision::bf16 &&
      c.model.kind != ModelKind::wide_resnet)
    block_model(c).attention_dropout = 0;  // else its library is never asked
  c.train.zero = choice[zero_at];
  c.train.sequence_parallel = choice[sequence_at] == 1;
  const bool some = choice[cuts_at] == 1;
  if (choice[tapes_at] == 1) c.train.recompute = some ? every_other_block(c) : WhichBlocks::block;
  if (choice[tapes_at] == 2) c.train.swap = some ? every_other_block(c) : WhichBlocks::block;
  if (choice[tapes_at] == 2 && some && choice[accumulation_at] == 1)
    c.train.recompute = every_other_block(c, 1);
  c.optimizer.kind = choice[optimizer_at] == 1 ? OptimizerKind::sgd : OptimizerKind::adamw;
  if (choice[cuts_at] == choice[accumulation_at]) c.memory.optimizer = StatePlace::host;
  c.train.noise_every = 1;
  return resolve(c);
}

/// A configuration that does the arithmetic of `c` on one rank in the simplest way.
inline Config alone(Config c) {
  c.grid = {};
  c.schedule = {};
  c.repartition = {};
  c.memory.optimizer = StatePlace::device;
  c.train.zero = 0;
  c.train.sequence_parallel = false;
  c.train.recompute = c.train.swap = WhichBlocks::none;
  return resolve(c);
}

/// A model's kind and what of it makes the most difference between layouts.
inline std::string describe_model(const ModelConfig& model) {
  switch (model.kind) {
    case ModelKind::gpt:
      return model.gpt.tied ? "gpt tied" : "gpt untied";
    case ModelKind::transformer:
      return model.transformer.order == BlockOrder::pre_norm
                 ? "transformer tied"
                 : fmt::format("post-norm transformer of tables {}", model.transformer.tables);
    default:
      return std::string(name_of(model.kind));
  }
}

inline std::string describe(const Config& c) {
  return fmt::format("{} x {} x {} of {} x {} shards, {}{}, {} {}, {}, batch {}, zero {}{}{}{}",
                     c.grid.pipeline, c.grid.data, c.grid.tensor, c.reproducible.data, c.reproducible.tensor,
                     c.schedule.kind, c.schedule.cuts.empty() ? "" : " cut unevenly", describe_model(c.model),
                     c.train.precision, c.optimizer.kind, c.train.batch, c.train.zero,
                     c.train.sequence_parallel ? ", sequence parallel" : "",
                     c.train.recompute.any() ? ", recomputed" : "", c.train.swap.any() ? ", swapped" : "");
}

/// Few choices in which every possible pair of options of two dimensions occurs. They are looked for among
/// up to a million, so those of each question are kept.
inline const std::vector<Choice>& covering_choices(
    int ranks, int first_styles = style_count, int first_of_shardings = first_shardings,
    int first_of_schedules = static_cast<int>(schedules.size()), int first_of_tapes = tapes) {
  static std::map<std::pair<int, Choice>, std::vector<Choice>> known;
  const Choice options =
      options_of(ranks, first_styles, first_of_shardings, first_of_schedules, first_of_tapes);
  const auto [found, is_new] = known.try_emplace(std::pair(ranks, options));
  if (!is_new) return found->second;
  std::vector<Choice> possible;
  for_each_choice<dimensions>(options, [&](const Choice& c) {
    if (is_possible(c, ranks)) possible.push_back(c);
  });
  return found->second = covering<dimensions>(possible);
}

/// Every combination of grid, schedule, model, precision, ZeRO, sequence parallelism and fate of tapes;
/// shards, cuts, batch and optimizer are drawn for each by a hash, so that they go round with no other
/// dimension.
inline std::vector<Choice> all_choices(int ranks) {
  std::vector<Choice> chosen;
  Choice options = options_of(ranks);
  for (int i = shards_at; i < dimensions; ++i) options[i] = 1;
  for_each_choice<dimensions>(options, [&](Choice c) {
    if (!has_stages(c, ranks)) return;
    std::size_t turn = (chosen.size() * 0xD1B54A32D192ED03u >> 40) % 24;
    do {
      c[shards_at] = static_cast<int>(turn % 3);
      c[cuts_at] = static_cast<int>(turn / 3 % 2);
      c[accumulation_at] = static_cast<int>(turn / 6 % 2);
      c[optimizer_at] = static_cast<int>(turn / 12 % 2);
      ++turn;
    } while (!is_possible(c, ranks));
    chosen.push_back(c);
  });
  return chosen;
}

}  // namespace mindpipe
