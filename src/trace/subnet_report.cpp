#include "trace/subnet_report.h"

#include <algorithm>
#include <set>

#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::size_t most_waits = 3, most_causes = 3;
constexpr const char* names_of_reasons[] = {"input", "owner", "room"};
static_assert(std::size(names_of_reasons) == wait_reasons);

/// A time in which a rank's compute queue stood idle before an action.
struct Idle {
  int action = 0;
  int cause = -1;  ///< what had to end for it to begin
  std::int64_t lasts = 0, host = 0;
};

/// Calls see(idle) for each action of a rank's compute queue, in order.
template <class See>
void each_idle(const StepTrace& trace, const ReplayGraph& graph, int rank, const See& see) {
  const int first = graph.first_of(rank);
  const auto at = [&](int action) -> const Recorder::Times& {
    return trace.ranks[rank].steps.front()[graph.index_of(action)];
  };
  std::int64_t free = -1;
  for (int action = first; action < graph.first_of(rank + 1); ++action) {
    if (graph.at(action).queue != Queue::compute) continue;
    if (free >= 0) {
      Idle idle{.action = action};
      std::int64_t ready = free;
      for (const int before : graph.wait_of(action).ended)
        if (const std::int64_t end = at(first + before).end; end > ready) {
          ready = end;
          idle.cause = first + before;
        }
      idle.lasts = ready - free;
      idle.host = std::max<std::int64_t>(0, at(action).start - ready);
      see(idle);
    }
    free = at(action).end;
  }
}

/// "rank 1 (...) stood idle for 2.1 ms, since an owner had not updated its units: forward ... began when
/// receive ... had ended"
std::string text_of(const Idle& idle, const ReplayGraph& graph) {
  constexpr const char* reasons[] = {"what it reads had not come",
                                     "an owner of its units was not done with them", "there was no room"};
  static_assert(std::size(reasons) == wait_reasons);
  const Action& cause = graph.at(idle.cause);
  const std::string peer =
      is_message(cause) ? fmt::format(", that is stage {},", name_of_program_rank(graph.grid(), cause.peer))
                        : "";
  return fmt::format("- {} stood idle for {}, since {}: {} began when {}{} had ended\n",
                     graph.name_of_rank(graph.rank_of(idle.action)), signed_time(idle.lasts),
                     reasons[static_cast<std::size_t>(graph.at(idle.action).waits)],
                     to_string(graph.at(idle.action)), to_string(cause), peer);
}

std::int64_t count_of(const StepTrace& trace) {
  return static_cast<std::int64_t>(std::max<std::size_t>(1, subnets_of(trace).size()));
}

}  // namespace

std::set<std::int64_t> subnets_of(const StepTrace& trace) {
  std::set<std::int64_t> subnets;
  for (const std::vector<Action>& list : trace.program.ranks)
    for (const Action& action : list)
      if (is_pass(action)) subnets.insert(action.owner.number);
  return subnets;
}

std::int64_t computed_for(const StepTrace& trace) {
  std::int64_t begin = 0, end = 0;
  for (int rank = 0; rank < static_cast<int>(trace.ranks.size()); ++rank)
    for (std::size_t index = 0; index < trace.list(rank).size(); ++index) {
      const Recorder::Times& times = trace.ranks[rank].steps.front()[index];
      if (trace.list(rank)[index].queue != Queue::compute) continue;
      if (begin == 0 || times.start < begin) begin = times.start;
      end = std::max(end, times.end);
    }
  return end - begin;
}

std::vector<StageTime> stage_times(const StepTrace& trace, const ReplayGraph& graph) {
  std::vector<StageTime> stages;
  for (int place = 0; place < program_ranks(graph.grid()); ++place) {
    StageTime& time = stages.emplace_back();
    const int rank = rank_that_runs(graph.grid(), place), first = graph.first_of(rank);
    for (int action = first; action < graph.first_of(rank + 1); ++action)
      if (graph.at(action).queue == Queue::compute) {
        const Recorder::Times& times = trace.ranks[rank].steps.front()[action - first];
        time.computes += times.end - times.start;
      }
    each_idle(trace, graph, rank, [&](const Idle& idle) {
      time.waits[static_cast<std::size_t>(graph.at(idle.action).waits)] += idle.lasts;
      time.host += idle.host;
    });
  }
  return stages;
}

std::string text_of_subnets(const Cause& cause, const StepTrace& trace, const ReplayGraph& graph) {
  Cause of_one = cause;
  of_one.saves /= count_of(trace);
  return text_of(of_one, graph, computed_for(trace) / count_of(trace), "subnet");
}

std::string text_of_subnets(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                            const std::string& prices) {
  const ReplayMatch& identity = diagnosis.identity;
  const std::set<std::int64_t> subnets = subnets_of(trace);
  const std::int64_t count = count_of(trace);
  const auto each = [&](std::int64_t time) { return signed_time(time / count); };
  std::string text = fmt::format(
      "subnets {} to {} on {} ranks ({}), {}{}\n"
      "{} a subnet, from the first pass to the last end; replayed ({}, every begin within {:.1f} us, "
      "clocks within {:.1f} us)\n"
      "where the time of a stage goes, a subnet\n  {:<10}{:>12}{:>12}",
      subnets.empty() ? 0 : *subnets.begin(), subnets.empty() ? 0 : *subnets.rbegin(), graph.ranks(),
      to_string(trace.grid), trace.device,
      trace.injected.empty() ? "" : fmt::format("; injected: {}", trace.injected), each(computed_for(trace)),
      signed_percent(identity.error(), 2), static_cast<double>(identity.off) / 1e3,
      static_cast<double>(trace.clock_bound) / 1e3, graph.grid().supernet > 1 ? "lane.stage" : "stage",
      "computes", "host");
  for (const char* reason : names_of_reasons) text += fmt::format("{:>12}", reason);
  text += '\n';
  const std::vector<StageTime> stages = stage_times(trace, graph);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    text += fmt::format("  {:<10}{:>12}{:>12}", name_of_program_rank(graph.grid(), static_cast<int>(stage)),
                        each(stages[stage].computes), each(stages[stage].host));
    for (const std::int64_t waited : stages[stage].waits) text += fmt::format("{:>12}", each(waited));
    text += '\n';
  }
  for (std::size_t cause = 0; cause < std::min(diagnosis.causes.size(), most_causes); ++cause)
    text += fmt::format("- {}\n", text_of_subnets(diagnosis.causes[cause], trace, graph));
  std::vector<Idle> longest;
  for (int place = 0; place < program_ranks(graph.grid()); ++place)
    each_idle(trace, graph, rank_that_runs(graph.grid(), place), [&](const Idle& idle) {
      if (idle.cause >= 0) longest.push_back(idle);
    });
  std::stable_sort(longest.begin(), longest.end(),
                   [](const Idle& a, const Idle& b) { return a.lasts > b.lasts; });
  longest.resize(std::min(longest.size(), most_waits));
  for (const Idle& idle : longest) text += text_of(idle, graph);
  if (!prices.empty()) text += fmt::format("- {}\n", prices);
  for (const WhatIfResult& change : diagnosis.changes) {
    const bool same_order = change.note.empty();
    const std::int64_t more =
        change.expected.period - (same_order ? diagnosis.expected.period : computed_for(trace));
    text += fmt::format("what if {}, {}: {} a subnet, {} {}{}\n", change.change,
                        same_order ? "in the same order" : "as it would be planned",
                        each(change.expected.period), each(std::abs(more)), more > 0 ? "longer" : "shorter",
                        same_order ? "" : " (" + change.note + ")");
  }
  return text;
}

}  // namespace mindpipe
