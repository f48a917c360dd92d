#pragma once
#include <cmath>
#include <functional>
#include <random>

#include "program/sample_outline.h"
#include "trace/replay.h"

namespace mindpipe {

/// A run that exists on paper alone: its lists, what they take without noise, and how much noise there is.
struct MadeRun {
  Coord grid{1, 1, 1, 1};
  PlannedStep plan;
  Durations paper;
  std::int64_t host = 2'000;  ///< nanoseconds between actions, on the average
  double noise = 0.01;        ///< scatter of passes and updates
  double travel = 0.05;       ///< scatter of transfers
};

/// Stages whose forwards take a millisecond, with links that take a twentieth of that for a message.
/// `blocks`: of each chunk; `change`: what else is to be so.
inline MadeRun made_run(
    const Coord& grid, int micro_batches, ScheduleKind schedule, int chunks = 1, bool state_on_host = false,
    int blocks = 2, const std::function<void(Outline&)>& change = [](Outline&) {}) {
  Outline outline = equal_stages(grid.pipeline, micro_batches, chunks,
                                 {1'000'000, 2'000'000, 1'000'000, 1'000'000}, blocks);
  outline.data = grid.data;
  outline.tensor = grid.tensor;
  for (UnitCost& unit : outline.units) {
    unit.gradients = unit.values = 4'000'000;
    unit.update = 100'000;
  }
  for (BoundaryBytes& cut : outline.cuts) cut = {1'000'000, 0, 1'000'000, 0};
  Network network;
  network.message = network.data = network.grid = {.latency = 5'000, .picoseconds_per_byte = 50};
  outline.state_on_host = state_on_host;  // a unit's takes two forwards of a stage each way
  for (UnitCost& unit : outline.units) unit.state = 2 * unit.gradients;
  network.copies = {.picoseconds_per_byte = 250, .level = Level::copies};
  change(outline);
  MadeRun run{.grid = grid, .plan = make_program(outline, schedule, network)};
  run.paper = durations_of(run.plan.program, outline, network);
  return run;
}

/// What may be wrong with a run: how many times as long an action takes in a step, and how much longer its
/// host waits before it.
struct Fault {
  std::function<double(int step, int action)> longer = [](int, int) { return 1.0; };
  std::function<std::int64_t(int step, int action)> later = [](int, int) { return std::int64_t{0}; };
};

/// Times of all actions of a run, drawn.
inline ReplayTimes draw_times(const MadeRun& run, const ReplayGraph& graph, int steps, const Fault& fault,
                              std::mt19937_64& random) {
  ReplayTimes times{.sums_of = std::vector<int>(graph.actions() + 1, 0)};
  std::normal_distribution<double> normal;
  std::exponential_distribution<double> exponential;
  for (int step = 0; step < steps; ++step) {
    ReplayRow& row = times.rows.emplace_back();
    row.eager.resize(graph.actions());
    for (int action = 0; action < graph.actions(); ++action) {
      const double paper = static_cast<double>(run.paper[graph.stage_of(action)][graph.index_of(action)]);
      const double noise = is_communication(graph.at(action)) ? run.travel : run.noise;
      row.lasts.push_back(
          std::llround(paper * std::exp(noise * normal(random)) * fault.longer(step, action)));
      row.lag.push_back(std::llround(static_cast<double>(run.host) * exponential(random)) +
                        fault.later(step, action));
    }
  }
  return times;
}

/// The trace that a run of these times leaves.
inline StepTrace trace_of(const MadeRun& run, const ReplayGraph& graph, const ReplayTimes& times) {
  const int steps = static_cast<int>(times.rows.size());
  const Replayed replayed = replay(graph, times, steps);
  constexpr std::int64_t zero = 1'000'000'000;
  StepTrace trace{.grid = run.grid, .program = run.plan.program, .paper = run.paper};
  trace.ranks.resize(graph.ranks());
  for (int step = 0; step < steps; ++step) {
    trace.steps.push_back(step + 1);
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      trace.ranks[rank].sums.emplace_back();
      std::vector<Recorder::Times>& row = trace.ranks[rank].steps.emplace_back();
      for (int action = graph.first_of(rank); action < graph.first_of(rank + 1); ++action)
        row.push_back({zero + replayed.starts[step][action], zero + replayed.ends[step][action]});
    }
  }
  return trace;
}

}  // namespace mindpipe
