#include "program/schedules/order.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/text.h"

namespace mindpipe {

std::vector<Pass> passes_in_groups(ActionKind kind, const std::vector<int>& groups,
                                   const OrderRequest& request) {
  std::vector<Pass> passes;
  const bool forward = traits_of_pass(kind).travel == Travel::forward;
  int first = 0;
  for (const int group : groups.empty() ? std::vector{request.micro_batches} : groups) {
    for (int turn = 0; turn < request.chunks; ++turn)
      for (int k = first; k < first + group; ++k)
        passes.push_back({kind, (forward ? turn : request.chunks - 1 - turn) * request.stages, k});
    first += group;
  }
  return passes;
}

std::vector<int> nearest_groups(const std::vector<int>& groups, int stages, int micro_batches) {
  std::vector<int> near = groups;
  near.resize(std::clamp<std::size_t>(groups.size(), 1, std::max(1, micro_batches / stages)));
  for (int& group : near) group = std::max(group, std::min(stages, micro_batches));
  const std::int64_t all = std::accumulate(near.begin(), near.end(), std::int64_t{0});
  if (all < micro_batches) near.back() += static_cast<int>(micro_batches - all);
  std::int64_t over = all - micro_batches;
  for (auto group = near.rbegin(); group != near.rend() && over > 0; ++group) {
    const int less = static_cast<int>(std::min<std::int64_t>(over, *group - std::min(stages, micro_batches)));
    *group -= less;
    over -= less;
  }
  return near;
}

void require_groups(const MicroBatchGroups& groups, int stages, int micro_batches) {
  const int least = std::min(stages, micro_batches);
  for (const auto& [name, sizes] :
       {std::pair("forward", &groups.forward), std::pair("backward", &groups.backward)}) {
    const bool is_whole = std::accumulate(sizes->begin(), sizes->end(), std::int64_t{0}) == micro_batches &&
                          std::all_of(sizes->begin(), sizes->end(), [&](int size) { return size >= least; });
    MP_REQUIRE(sizes->empty() || is_whole, Exit::bad_configuration,
               "schedule.groups.{} is [{}], and a rank has {} micro-batch{} on {} stage{}: groups add up to "
               "them, and each has {} or more (the nearest that fit: [{}])",
               name, joined(*sizes), micro_batches, micro_batches == 1 ? "" : "es", stages,
               stages == 1 ? "" : "s", least, joined(nearest_groups(*sizes, stages, micro_batches)));
  }
}

Order make_order(ScheduleKind schedule, const OrderRequest& request) {
  const ScheduleRow& row = row_of(schedule);
  MP_REQUIRE(row.may_have(request.chunks), Exit::bad_configuration,
             "schedule.chunks is {}, but schedule {} runs {} on each stage (set schedule.chunks to {}, or "
             "take {})",
             request.chunks, row.name, row.in_v ? "two chunks" : "one chunk", row.chunks(),
             names_with<ScheduleKind>(&ScheduleRow::has_chunks, " or "));
  MP_REQUIRE(!row.in_v || request.stages > 1, Exit::bad_configuration,
             "schedule {} goes down the stages and up again, but the pipeline has one stage (take a larger "
             "grid.pipeline, or another schedule)",
             row.name);
  const std::vector<int> needed = row.in_v ? v_shaped_chunks(request.stages, request.chunks)
                                           : looped_chunks(request.stages, request.chunks);
  for (int chunk = 0; chunk < request.stages * request.chunks; ++chunk)
    MP_REQUIRE(row.any_placement || request.rank_of(chunk) == needed[chunk], Exit::bad_configuration,
               "schedule {} needs chunk {} on stage {}, not {} (only {} runs on any placement)", row.name,
               chunk, needed[chunk], request.rank_of(chunk),
               names_with<ScheduleKind>(&ScheduleRow::any_placement, " or "));
  require_groups(request.groups, request.stages, request.micro_batches);
  switch (schedule) {
#define MINDPIPE_CALL_ORDER(kind, ...) \
  case ScheduleKind::kind:             \
    return kind##_order(request);
    MINDPIPE_STEP_SCHEDULES(MINDPIPE_CALL_ORDER)
#undef MINDPIPE_CALL_ORDER
    default:
      break;
  }
  fail(Exit::internal, "schedule {} orders no steps", row.name);
}

}  // namespace mindpipe
