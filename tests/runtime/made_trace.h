#pragma once
#include <random>

#include "trace/step_trace.h"

namespace mindpipe {

/// A trace with numbers of no meaning, of two stages and two replicas.
inline StepTrace trace_of_numbers() {
  StepTrace trace{.grid = {.tensor = 1, .data = 2, .pipeline = 2, .supernet = 1},
                  .steps = {5, 6, 7},
                  .hosts = {"a", "a", "b", "b"},
                  .ranks_per_node = 4,
                  .operations = {"gather", "sum"},
                  .calls = {.part_bytes = 300, .of_sum = 6, .of_gather = 2, .of_move = 16},
                  .clock_bound = 250,
                  .configuration = "seed: 1\nrun: {dir: \"runs/x\"}\n",
                  .maker = "0.3.0",
                  .device = "cpu: avx2, 1 thread",
                  .injected = "slow@1:5:2s"};
  std::mt19937_64 random(7);
  for (int stage = 0; stage < 2; ++stage) {
    std::vector<Action>& list = trace.program.ranks.emplace_back();
    for (int index = 0; index < 40; ++index) {
      Action action = action_of(static_cast<ActionKind>(random() % std::size(ActionKind_rows)));
      action.micro_batch = static_cast<int>(random() % 8);
      action.first = static_cast<int>(random() % 4);
      action.last = action.first + 1;
      action.peer = is_message(action) ? 1 - stage : -1;
      action.bytes = static_cast<std::int64_t>(random() >> 20);
      action.fold = random() % 2 == 0;
      if (index > 2) action.after = {index - 3, index - 1};
      list.push_back(action);
    }
    trace.paper.emplace_back(list.size(), 1000 + stage);
  }
  for (int rank = 0; rank < 4; ++rank) {
    RankTimes& times = trace.ranks.emplace_back();
    std::int64_t now = 1'000'000;
    for (std::size_t step = 0; step < trace.steps.size(); ++step) {
      times.steps.emplace_back();
      for (std::size_t index = 0; index < trace.list(rank).size(); ++index) {
        const std::int64_t start = now += static_cast<std::int64_t>(random() % 1000);
        times.steps.back().push_back({start, now += static_cast<std::int64_t>(random() % 1000)});
      }
      times.sums.push_back({{3, 1, now - 20, now - 10}, {4, 0, now - 5, now}});
      times.host.push_back({now / 10, rank, 1, static_cast<std::int64_t>(step), 7});
    }
    if (rank == 2) times.pings = {{10, 20, 21, 30}, {40, 52, 53, 60}};
  }
  return trace;
}

}  // namespace mindpipe
