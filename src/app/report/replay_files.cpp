#include "app/report/replay_files.h"

#include <fmt/core.h>

#include "app/run/json_line.h"
#include "trace/host_reasons.h"
#include "trace/subnet_report.h"

namespace mindpipe {
namespace {

std::string json_of(const Expected& expected) {
  return JsonLine()
      .add("period", expected.period)
      .add("least", expected.least)
      .add("most", expected.most)
      .add("draws", expected.draws)
      .text();
}

/// Objects of a list, one a line.
template <class Items, class Text>
std::string list_of(const Items& items, const Text& text) {
  std::string all;
  for (const auto& item : items) all += fmt::format("{}\n  {}", all.empty() ? "" : ",", text(item));
  return fmt::format("[{}]", all);
}

std::string json_of_suspects(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph) {
  return list_of(diagnosis.suspected, [&](const Cause& cause) {
    return JsonLine()
        .add("rank", cause.rank)
        .add("factor", cause.factor)
        .add("share_of_steps", cause.share)
        .add("since", cause.since)
        .add("text", text_of_suspect(cause, graph, trace.steps.size()))
        .text();
  });
}

std::string json_of_stages(const StepTrace& trace, const ReplayGraph& graph) {
  std::vector<StageTime> times;
  if (trace.of_subnets) times = stage_times(trace, graph);
  return list_of(times, [](const StageTime& stage) {
    return JsonLine()
        .add("computes", stage.computes)
        .add("host", stage.host)
        .add("waits_for_input", stage.waited(WaitReason::input))
        .add("waits_for_owner", stage.waited(WaitReason::owner))
        .add("waits_for_room", stage.waited(WaitReason::room))
        .text();
  });
}

}  // namespace

std::string replay_json(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph) {
  const std::int64_t period = diagnosis.levels.empty() ? 0 : diagnosis.levels.front().period;
  const std::string levels = list_of(diagnosis.levels, [](const StepLevel& level) {
    return JsonLine()
        .add("away", level.cause)
        .add("period", level.period)
        .add("costs", level.costs)
        .add("added", level.added.value_or(level.costs))
        .add("interacts", level.interacts)
        .text();
  });
  const std::string causes = list_of(diagnosis.causes, [&](const Cause& cause) {
    return JsonLine()
        .add("kind", name_of(cause.kind))
        .add("rank", cause.rank)
        .add("lane", cause.rank < 0 ? -1 : coord_at(graph.grid(), cause.rank).supernet)
        .add("stage", cause.stage)
        .add("other_stage", cause.peer)
        .add("factor", cause.factor)
        .add("share_of_steps", cause.share)
        .add("since", cause.since)
        .add("saves", cause.saves)
        .add("likely", cause.reason)
        .add("text", trace.of_subnets ? text_of_subnets(cause, trace, graph) : text_of(cause, graph, period))
        .text();
  });
  const std::string changes = list_of(diagnosis.changes, [](const WhatIfResult& change) {
    return fmt::format(R"({{"change": {}, "expected": {}, "note": {}}})", json_string(change.change),
                       json_of(change.expected), json_string(change.note));
  });
  const std::int64_t took = trace.of_subnets ? computed_for(trace) : 0;
  std::vector<std::int64_t> steps = trace.steps;
  if (const auto subnets = subnets_of(trace); trace.of_subnets && !subnets.empty())
    steps = {*subnets.begin(), *subnets.rbegin()};
  return fmt::format(
      "{{\"first_step\": {}, \"last_step\": {}, \"ranks\": {}, \"measured_period\": {}, \"replayed_period\": "
      "{}, "
      "\"largest_difference\": {}, \"held_out\": {:.6f}, \"held_out_plain\": {:.6f}, \"run_delay\": {:.0f}, "
      "\"pauses\": {}, \"paused\": "
      "{},\n\"expected\": "
      "{},\n\"levels\": {},\n\"causes\": "
      "{},\n\"suspected\": {},\n\"changes\": {},\n\"subnets_took\": {}, \"stages\": {}}}\n",
      steps.front(), steps.back(), graph.ranks(), diagnosis.identity.measured, diagnosis.identity.replayed,
      diagnosis.identity.off, diagnosis.held_out, diagnosis.held_out_plain, usual_run_delay(trace),
      trace.pauses, trace.paused, json_of(diagnosis.expected), levels, causes,
      json_of_suspects(diagnosis, trace, graph), changes, took, json_of_stages(trace, graph));
}

}  // namespace mindpipe
