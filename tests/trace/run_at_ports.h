#pragma once
#include <numeric>

#include "program/clock/simulate.h"
#include "program/clock/task_graph.h"
#include "trace/made_run.h"

namespace mindpipe {

/// A program as many times as there are steps: a list goes on where all of its step before has ended.
inline Program chained(const Program& program, int steps) {
  Program all;
  for (const std::vector<Action>& list : program.ranks) {
    std::vector<Action>& chain = all.ranks.emplace_back();
    const std::vector<ListWait> waits = waits_in(list, Follow::by_times);
    std::vector<int> step_before(list.size());
    for (int step = 0; step < steps; ++step) {
      const int first = static_cast<int>(chain.size()), before = first - static_cast<int>(list.size());
      std::iota(step_before.begin(), step_before.end(), before);
      for (std::size_t index = 0; index < list.size(); ++index) {
        Action& action = chain.emplace_back(list[index]);
        for (int& earlier : action.after) earlier += first;
        if (step > 0 && waits[index].is_for_nothing())
          action.after.insert(action.after.end(), step_before.begin(), step_before.end());
      }
    }
  }
  return all;
}

/// When a rank would have recorded that its actions begin and end: it posts its end of a transfer as soon as
/// it may, and the simulator says when all ends are there.
inline std::vector<Recorder::Times> recorded(const std::vector<Action>& list,
                                             const std::vector<Span>& spans) {
  std::vector<Recorder::Times> times;
  for (const ListWait& wait : waits_in(list, Follow::by_times)) {
    std::int64_t begin = 0;
    for (const int before : wait.ended) begin = std::max(begin, times[before].end);
    if (wait.begun >= 0) begin = std::max(begin, times[wait.begun].start);
    times.push_back({begin, spans[times.size()].end});
  }
  return times;
}

/// The trace of a made run whose transfers meet at ports: steps as the simulator has them, each with times
/// drawn about those on paper. All replicas are alike. An equal seed draws equal times.
inline StepTrace trace_at_ports(const MadeRun& run, const Network& network, int steps, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const Program& program = run.plan.program;
  StepTrace trace{.grid = run.grid, .program = program, .paper = run.paper, .calls = network.calls};
  Durations drawn(run.paper.size());
  for (int step = 0; step < steps; ++step) {
    trace.steps.push_back(step + 1);
    for (std::size_t stage = 0; stage < drawn.size(); ++stage)
      for (std::size_t index = 0; index < run.paper[stage].size(); ++index) {
        const double noise = is_communication(program.ranks[stage][index]) ? run.travel : run.noise;
        drawn[stage].push_back(
            std::llround(static_cast<double>(run.paper[stage][index]) * std::exp(noise * normal(random))));
      }
  }
  const Program all = chained(program, steps);
  const Timeline line = simulate(all, drawn, network);
  constexpr std::int64_t zero = 1'000'000'000;
  trace.ranks.resize(num_ranks(run.grid));
  for (int rank = 0; rank < num_ranks(run.grid); ++rank) {
    const int list = program_rank_at(run.grid, coord_at(run.grid, rank));
    const std::vector<Recorder::Times> times = recorded(all.ranks[list], line.spans[list]);
    const auto of_step = static_cast<std::ptrdiff_t>(program.ranks[list].size());
    trace.ranks[rank].sums.resize(steps);
    for (int step = 0; step < steps; ++step) {
      auto& row = trace.ranks[rank].steps.emplace_back(times.begin() + step * of_step,
                                                       times.begin() + (step + 1) * of_step);
      for (Recorder::Times& action : row) action = {zero + action.start, zero + action.end};
    }
  }
  return trace;
}

}  // namespace mindpipe
