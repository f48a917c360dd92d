#include "trace/levels.h"

#include <algorithm>
#include <cmath>

#include "trace/trace_parts.h"

namespace mindpipe {
namespace {

/// A cause has to cost so much of a step, taken away or added, that the two are compared; they disagree where
/// they differ by this share of the larger.
constexpr double worth_comparing = 0.01, disagree = 0.2;

struct Words {
  const char *name, *remedy;
};

Words words_of(const TracePart& part) {
  switch (part.kind) {
    case TracePart::host:
      return {"the host between actions", ""};
    case TracePart::noise:
      return {"noise", ""};
    case TracePart::micro_batches:
      return {"unequal micro-batches", ""};
    case TracePart::ranks:
      return {"ranks slower than their peers", ""};
    case TracePart::stages:
      return {"unequal stages", ""};
    case TracePart::contention:
      return {"traffic that delays other traffic", ""};
    case TracePart::tensor_sums:
      return {"tensor sums", "a smaller grid.tensor exchanges less, and its ranks should share a node"};
    case TracePart::traffic:
      break;
  }
  switch (part.of) {
    case TrafficClass::pipeline:
      return {"messages between stages", "fewer stages, or fewer chunks, send fewer of them"};
    case TrafficClass::gradients:
      return {"sums of gradients",
              "more micro-batches (a larger train.batch), or schedule.kind: breadth-first, hide them"};
    case TrafficClass::moves:
      return {"masters and moments on their way", "memory.optimizer: device fetches none from the host"};
    case TrafficClass::values:
      return {"gathers of weights", "a larger train.batch gathers less often, train.zero: 0 not at all"};
    default:
      return {"sums of scalars", "a larger train.batch needs them less often"};
  }
}

std::int64_t period_of(const ReplayGraph& graph, const ReplayTimes& times, Counted counted) {
  return replayed_period(graph, times, static_cast<int>(times.rows.size()), counted);
}

/// What the rank with the most work computes in a step.
std::int64_t most_work(const ReplayGraph& graph, const ReplayTimes& times, const WorkModel& model) {
  std::int64_t most = 0;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    std::int64_t work = 0;
    for (const ReplayRow& row : times.rows)
      for (int action = graph.first_of(rank); action < graph.first_of(rank + 1); ++action)
        if (model.works().of(action) >= 0) work += computed_by(row, times, action);
    most = std::max(most, work / std::ssize(times.rows));
  }
  return most;
}

}  // namespace

std::vector<StepLevel> levels_of(const ReplayGraph& graph, const ReplayTimes& measured,
                                 const WorkModel& model, Counted counted, const TracedPorts* traffic) {
  TraceParts parts(graph, measured, model, traffic);
  std::vector<StepLevel> levels{{.cause = "as it ran", .period = period_of(graph, measured, counted)}};
  const auto away = [&](const Words& words, std::int64_t period) {
    levels.push_back({.cause = words.name,
                      .period = period,
                      .costs = levels.back().period - period,
                      .remedy = words.remedy});
  };
  TraceParts::Kept kept;
  kept.set();
  for (std::size_t part = 0; part < parts.all().size(); ++part) {
    kept.reset(part);
    away(words_of(parts.all()[part]), period_of(graph, parts.with(kept), counted));
  }
  away(
      {"the schedule's bubble",
       "more micro-batches a step fill the pipeline (a smaller train.micro_batch, a larger train.batch), and "
       "schedule.kind: zb-h1 or interleaved shortens what is left"},
      most_work(graph, parts.with(kept), model));
  return levels;
}

void compare_with_ideal(std::vector<StepLevel>& levels, const ReplayGraph& graph, const ReplayTimes& measured,
                        const WorkModel& model, const TracedPorts* traffic) {
  TraceParts parts(graph, measured, model, traffic);
  const auto with = [&](std::initializer_list<std::size_t> some) {
    TraceParts::Kept kept;
    for (const std::size_t part : some) kept.set(part);
    return period_of(graph, parts.with(kept), Counted::behind_the_first);
  };
  const std::int64_t ideal = with({}),
                     worth = std::llround(worth_comparing * static_cast<double>(levels.front().period));
  const auto level_of = [&](std::size_t part) -> StepLevel& { return levels[part + 1]; };
  const auto larger = [](const StepLevel& level) {
    return std::max(std::abs(level.costs), std::abs(*level.added));
  };
  for (std::size_t part = 0; part < parts.all().size(); ++part) level_of(part).added = with({part}) - ideal;
  for (std::size_t part = 0; part < parts.all().size(); ++part) {
    StepLevel& level = level_of(part);
    if (larger(level) < worth || std::abs(level.costs - *level.added) <= disagree * larger(level)) continue;
    std::int64_t most = 0;
    for (std::size_t other = 0; other < parts.all().size(); ++other) {
      if (other == part || larger(level_of(other)) < worth) continue;
      const std::int64_t both = std::abs(with({part, other}) - ideal - *level.added - *level_of(other).added);
      if (both <= most) continue;
      most = both;
      level.interacts = level_of(other).cause;
    }
    if (most == 0) level.interacts = levels.back().cause;
  }
}

ReplayTimes ideal_times(const ReplayGraph& graph, const ReplayTimes& measured, const WorkModel& model) {
  TraceParts parts(graph, measured, model, nullptr);
  TraceParts::Kept kept;
  kept.set();
  for (std::size_t part = 0; part < parts.all().size(); ++part)
    if (parts.all()[part].kind <= TracePart::stages) kept.reset(part);
  return parts.with(kept);
}

}  // namespace mindpipe
