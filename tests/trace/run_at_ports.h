#pragma once
#include "program/clock/simulate.h"
#include "trace/made_run.h"

namespace mindpipe {

/// The trace of a made run whose transfers meet at ports: steps as the simulator has them, each with times
/// drawn about those on paper, one behind the other. All replicas are alike. An equal seed draws equal times.
inline StepTrace trace_at_ports(const MadeRun& run, const Network& network, int steps, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const Program& program = run.plan.program;
  StepTrace trace{.grid = run.grid, .program = program, .paper = run.paper};
  trace.ranks.resize(num_ranks(run.grid));
  std::int64_t zero = 1'000'000'000;
  for (int step = 0; step < steps; ++step) {
    Durations drawn = run.paper;
    for (std::size_t stage = 0; stage < drawn.size(); ++stage)
      for (std::size_t index = 0; index < drawn[stage].size(); ++index) {
        const double noise = is_communication(program.ranks[stage][index]) ? run.travel : run.noise;
        drawn[stage][index] =
            std::llround(static_cast<double>(drawn[stage][index]) * std::exp(noise * normal(random)));
      }
    const Timeline line = simulate(program, drawn, network);
    trace.steps.push_back(step + 1);
    for (int rank = 0; rank < num_ranks(run.grid); ++rank) {
      trace.ranks[rank].sums.emplace_back();
      std::vector<Recorder::Times>& row = trace.ranks[rank].steps.emplace_back();
      for (const Span& span : line.spans[program_rank_at(run.grid, coord_at(run.grid, rank))])
        row.push_back({zero + span.start, zero + span.end});
    }
    zero += line.step + run.host;
  }
  return trace;
}

}  // namespace mindpipe
