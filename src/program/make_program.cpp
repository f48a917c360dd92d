#include "program/make_program.h"

#include "core/bulk_parts.h"
#include "core/check.h"
#include "program/check/checker.h"
#include "program/lists/assemble.h"
#include "program/lists/tickets.h"
#include "program/schedules/order.h"

namespace mindpipe {

namespace {

/// Planning walks through every action some ten times: beyond this it takes minutes, and gigabytes.
constexpr double most_actions = 2e6;

/// About how many actions all stages have; sums over data go in parts.
double count_of_actions(const Outline& outline, ScheduleKind schedule) {
  const double passes = (row_of(schedule).splits_backward ? 3 : 2) + (outline.all_chunks() > 1 ? 4 : 0);
  double count = passes * outline.all_chunks() * outline.micro_batches;
  for (const UnitCost& unit : outline.units)
    count += 3 + (outline.data > 1 ? static_cast<double>(unit.gradients) / bulk_part_bytes *
                                         (outline.sharded_optimizer ? 2 : 1)
                                   : 0);
  return count;
}

}  // namespace

void require_few_actions(const Outline& outline, double count) {
  MP_REQUIRE(count <= most_actions, Exit::bad_configuration,
             "a step of {} micro-batches on {} stages has about {:.2g} actions, sums over data in parts of "
             "{} MiB among them, and more than {:.2g} cannot be planned; take a larger train.micro_batch, a "
             "smaller train.batch, fewer stages or more tensor ranks",
             outline.micro_batches, outline.stages, count, bulk_part_bytes >> 20, most_actions);
}

PlannedStep make_program(const Outline& outline, ScheduleKind schedule, const Network& network,
                         std::int64_t memory_limit) {
  require_few_actions(outline, count_of_actions(outline, schedule));
  MP_CHECK(outline.training, "forwards alone are no step");
  const Order order = make_order(schedule, {.stages = outline.stages,
                                            .micro_batches = outline.micro_batches,
                                            .chunks = outline.chunks,
                                            .micro_batches_of_shard = outline.micro_batches_of_shard(),
                                            .rank_of_chunk = outline.rank_of_chunk});
  PlannedStep step;
  step.network = network;
  step.program = assemble(outline, order);
  step.placement = place(step.program, outline, network);
  give_tickets(step.program, simulate(step.program, durations_of(step.program, outline, network), network));
  step.expected = simulate(step.program, durations_of(step.program, outline, network), network);
  require_sound(check(step.program, outline));
  const auto too_large = check_memory(step.placement, memory_limit);
  MP_REQUIRE(too_large.empty(), Exit::out_of_memory,
             "{}; the step does not fit (take a smaller train.micro_batch, more stages, train.recompute: "
             "block, or raise memory.device_limit)",
             too_large.front());
  return step;
}

}  // namespace mindpipe
