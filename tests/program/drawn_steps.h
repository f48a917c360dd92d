#pragma once
#include <random>

#include "program/sample_outline.h"

namespace mindpipe {

/// A step of any schedule on a small grid, drawn: stages, chunks, data ranks, shards, ZeRO, tied tables,
/// sums in parts.
struct DrawnStep {
  Outline outline;
  std::string schedule;

  explicit DrawnStep(unsigned seed, int most_stages = 8) {
    std::mt19937 random(seed);
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    const std::vector<std::string> schedules = all_schedules();
    schedule = schedules[below(static_cast<int>(schedules.size()))];
    const bool v = is_in_v(schedule);
    const int stages = (v ? 2 : 1) + below(most_stages - (v ? 1 : 0)), chunks = has_chunks(schedule)
                                                                                    ? 1 + below(3)
                                                                                : v ? 2
                                                                                    : 1;
    constexpr int divisors[] = {1, 2, 3, 4, 6, 8};
    const int shards = divisors[below(6)], of_shard = 1 + below(3);
    int micro_batches = shards * of_shard;
    if (schedule_named(schedule) == ScheduleKind::interleaved) micro_batches *= stages;
    outline = equal_stages(stages, micro_batches, chunks, {}, 1 + below(3));
    if (v) outline = in_v(std::move(outline));
    outline.shards = shards;
    outline.data = divisors[below(6)];
    outline.sharded_optimizer = outline.data > 1 && below(3) > 0;
    outline.sharded_gradients = outline.sharded_optimizer && below(2) == 0;
    const int blocks = outline.all_blocks();
    if (blocks > 1 && below(2) == 0) tie(outline, {0, blocks - 1}, below(2) == 0 ? 9 << 20 : 40);
    if (blocks > 4 && below(3) == 0) tie(outline, {1, blocks / 2, blocks - 2}, 40);
    for (int block = 0; block < blocks; ++block) {
      UnitCost& unit = outline.units[block];
      if (unit.values > 0 && below(6) == 0) unit.gradients = unit.values = 1 + below(11 << 20);
      if (block > blocks / 2 && below(2) == 0)
        outline.cuts[block].encoder_output = outline.cuts[block].encoder_output_gradient = 16;
      outline.blocks[block][0].forward += 37 * below(4);
      outline.blocks[block][0].backward += 51 * below(4);
    }
    outline.state_on_host = below(3) == 0;
    if (below(3) == 0)
      for (int block = 0; block < blocks; ++block) outline.swapped.push_back(below(2) == 0 ? 1 : 0);
  }
};

}  // namespace mindpipe
