#include "program/schedules/order.h"

#include "core/check.h"

namespace mindpipe {

Order make_order(ScheduleKind schedule, const OrderRequest& request) {
  const ScheduleRow& row = row_of(schedule);
  MP_REQUIRE(row.has_chunks || request.chunks == 1, Exit::bad_configuration,
             "schedule.chunks is {}, but schedule {} runs one chunk on each stage (set schedule.chunks to 1, "
             "or take {})",
             request.chunks, row.name, names_with<ScheduleKind>(&ScheduleRow::has_chunks, " or "));
  for (int chunk = 0; chunk < request.stages * request.chunks; ++chunk)
    MP_REQUIRE(row.any_placement || request.rank_of(chunk) == chunk % request.stages, Exit::bad_configuration,
               "schedule {} needs chunk {} on stage {}, not {} (only {} runs on a V placement)", row.name,
               chunk, chunk % request.stages, request.rank_of(chunk),
               names_with<ScheduleKind>(&ScheduleRow::any_placement, " or "));
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
