#include "program/make_program.h"

#include "core/check.h"
#include "program/assemble.h"
#include "program/check.h"
#include "program/order.h"
#include "program/tickets.h"

namespace mindpipe {

std::vector<int> ranks_of_chunks(const Outline& outline) {
  std::vector<int> ranks;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) ranks.push_back(outline.rank_of(chunk));
  return ranks;
}

PlannedStep make_program(const Outline& outline, const std::string& schedule, const Network& network, std::int64_t memory_limit) {
  Order order = make_order(schedule, outline.stages, outline.micro_batches, outline.micro_batches_of_shard(), ranks_of_chunks(outline));
  if (!outline.training)
    for (auto& work : order) std::erase_if(work, [](const Work& one) { return one.kind != Kind::forward; });
  PlannedStep step;
  step.network = network;
  step.program = assemble(outline, order);
  step.placement = place(step.program, outline, network);
  give_tickets(step.program, simulate(step.program, durations_of(step.program, outline, network), network));
  step.expected = simulate(step.program, durations_of(step.program, outline, network), network);
  require_sound(check(step.program, outline));
  const auto too_large = check_memory(step.placement, memory_limit);
  MP_REQUIRE(
      too_large.empty(), Exit::out_of_memory,
      "{}; the step does not fit (take a smaller train.micro_batch, more stages, train.recompute: block, or raise memory.device_limit)",
      too_large.front());
  return step;
}

}  // namespace mindpipe
