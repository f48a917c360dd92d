#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "program/make_program.h"

namespace mindpipe {

/// Times of one stage, in ticks of a thousand nanoseconds so that halves stay exact.
struct StageTimes {
  std::int64_t forward = 1000, backward = 2000, backward_input = 1000, backward_weight = 1000;
};

/// A pipeline of equal stages with free traffic: `blocks_per_chunk` blocks in every chunk that share the
/// stage's time evenly.
inline Outline equal_stages(int stages, int micro_batches, int chunks = 1, StageTimes times = {},
                            int blocks_per_chunk = 1) {
  Outline outline;
  outline.stages = stages;
  outline.chunks = chunks;
  outline.micro_batches = micro_batches;
  outline.rank_of_chunk = looped_chunks(stages, chunks);
  const int blocks = stages * chunks * blocks_per_chunk, of_stage = chunks * blocks_per_chunk;
  for (int i = 0; i < blocks; ++i) {
    BlockCost cost;
    cost.forward = times.forward / of_stage;
    cost.backward = times.backward / of_stage;
    cost.backward_input = times.backward_input / of_stage;
    cost.backward_weight = times.backward_weight / of_stage;
    cost.saved = 100;
    UnitCost unit;
    unit.values = 40;
    unit.gradients = 40;
    unit.state = 80;
    outline.units.push_back(unit);
    outline.add_block(cost, {i});
    outline.cuts.push_back({8, 0, 8, 0});
  }
  for (int chunk = 0; chunk <= stages * chunks; ++chunk)
    outline.first_block.push_back(chunk * blocks_per_chunk);
  return outline;
}

/// Masters and moments come to the device for updates alone.
inline Outline kept_on_host(Outline outline) {
  outline.state_on_host = true;
  return outline;
}

/// The tapes of these blocks wait on the host.
inline Outline with_swapped(Outline outline, const std::vector<int>& blocks) {
  outline.swapped.assign(outline.blocks.size(), 0);
  for (const int block : blocks) outline.swapped[block] = 1;
  return outline;
}

/// Lets `blocks` share the unit of the first of them in place of their own: a tied table.
inline void tie(Outline& outline, const std::vector<int>& blocks, std::int64_t gradient_bytes) {
  for (int block : blocks) {
    if (block != blocks.front()) outline.units[block] = {};
    outline.units_used[block][0] = {blocks.front()};
  }
  outline.units[blocks.front()].gradients = gradient_bytes;
  outline.units[blocks.front()].blocks = blocks;
}

/// What else a step can have: an encoder's output through the last cuts, a tied table, a sharded optimizer,
/// two data shards, uneven blocks.
inline Outline with_everything(Outline outline) {
  const int blocks = outline.all_blocks();
  if (blocks > 1) tie(outline, {0, blocks - 1}, 40);
  outline.data = 2;
  outline.sharded_optimizer = true;
  if (outline.micro_batches % 2 == 0) outline.shards = 2;
  for (int block = 0; block < blocks; ++block) {
    if (block > blocks / 2)
      outline.cuts[block].encoder_output = outline.cuts[block].encoder_output_gradient = 16;
    outline.blocks[block][0].forward += 37 * (block % 3);
    outline.blocks[block][0].backward += 51 * (block % 2);
  }
  return outline;
}

inline Outline on_data_ranks(Outline outline) {
  outline.data = 2;
  outline.sharded_optimizer = true;
  return outline;
}
/// Gradients take turns in slabs.
inline Outline in_slabs(Outline outline) {
  outline = on_data_ranks(std::move(outline));
  outline.sharded_gradients = true;
  return outline;
}

/// Exchanges two neighbours in a list; those that waited for one of them keep waiting for it.
inline void swap_places(std::vector<Action>& list, int a, int b) {
  std::swap(list[a], list[b]);
  for (Action& action : list)
    for (int& earlier : action.after) earlier = earlier == a ? b : earlier == b ? a : earlier;
}

/// The names of all schedules.
inline std::vector<std::string> all_schedules() {
  std::vector<std::string> names;
  for (const ScheduleRow& row : rows_of(ScheduleKind{}))
    if (!row.of_subnets) names.emplace_back(row.name);
  return names;
}
inline ScheduleKind schedule_named(std::string_view name) { return kind_named<ScheduleKind>(name).value(); }
inline bool has_chunks(std::string_view schedule) { return row_of(schedule_named(schedule)).has_chunks; }
inline bool is_in_v(std::string_view schedule) { return row_of(schedule_named(schedule)).in_v; }
inline Outline in_v(Outline outline) {
  outline.rank_of_chunk = v_shaped_chunks(outline.stages, outline.chunks);
  return outline;
}
/// Equal stages as a schedule wants them, of two chunks where it has some.
inline Outline equal_stages_for(std::string_view schedule, int stages, int micro_batches,
                                StageTimes times = {}, int blocks_per_chunk = 1) {
  if (is_in_v(schedule)) return in_v(equal_stages(stages, micro_batches, 2, times, blocks_per_chunk));
  return equal_stages(stages, micro_batches, has_chunks(schedule) ? 2 : 1, times, blocks_per_chunk);
}
/// Stages whose tapes have 12 numbers for every 16 that products put off need: those of GPT-2 on GPUs.
inline Outline stages_of_gpt2(std::string_view schedule, int stages, int micro_batches, StageTimes times) {
  Outline outline = equal_stages_for(schedule, stages, micro_batches, times);
  for (auto& candidates : outline.blocks) {
    candidates[0].saved = 1200 / outline.chunks;
    candidates[0].put_off = 400 / outline.chunks;
  }
  return outline;
}

/// The names of the schedules that a pipeline of so many stages can have.
inline std::vector<std::string> schedules_on(int stages) {
  std::vector<std::string> names = all_schedules();
  std::erase_if(names, [&](const std::string& name) { return stages == 1 && is_in_v(name); });
  return names;
}
/// The step of the schedule that a configuration calls by this name.
inline PlannedStep make_program(const Outline& outline, std::string_view schedule,
                                const Network& network = {}) {
  return make_program(outline, schedule_named(schedule), network);
}

/// The most tapes that each rank holds at once, counted in (micro-batch, chunk).
inline std::vector<int> peak_tapes(const Program& program, const Outline& outline) {
  std::vector<int> peaks;
  for (const auto& list : program.ranks) {
    int held = 0, peak = 0;
    for (const Action& action : list) {
      if (action.kind == ActionKind::forward) peak = std::max(peak, ++held);
      if (makes_gradients(action) && action.first == outline.first_block[action.chunk]) --held;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace mindpipe
