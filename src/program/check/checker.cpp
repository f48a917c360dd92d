#include "program/check/checker.h"

#include <algorithm>

#include "core/check.h"
#include "program/check/checker_parts.h"

namespace mindpipe {

bool waits_for(const Action& action, int earlier) {
  return std::find(action.after.begin(), action.after.end(), earlier) != action.after.end();
}

void check_fields(const Program& program, const Outline& outline, Findings& findings) {
  const int blocks = outline.all_blocks(), ranks = static_cast<int>(program.ranks.size());
  for (const auto& [rank, index] : program.places()) {
    const Action& action = program.ranks[rank][index];
    const bool pass = is_pass(action);
    if (action.first < 0 || action.last < action.first || action.last > blocks)
      findings.add(rank, index, "blocks [{}, {}) are not in the model of {} blocks", action.first,
                   action.last, blocks);
    if (is_message(action) && (action.peer < 0 || action.peer >= ranks || action.peer == rank))
      findings.add(rank, index, "there is no other rank {} to talk to ({} ranks)", action.peer, ranks);
    if (pass && (action.micro_batch < 0 || action.micro_batch >= outline.micro_batches))
      findings.add(rank, index, "the step has {} micro-batches", outline.micro_batches);
    else if (pass && action.shard != action.micro_batch / outline.micro_batches_of_shard())
      findings.add(rank, index, "micro-batch {} belongs to shard {}, not {}", action.micro_batch,
                   action.micro_batch / outline.micro_batches_of_shard(), action.shard);
    if (pass &&
        (action.chunk < 0 || action.chunk >= outline.all_chunks() || outline.rank_of(action.chunk) != rank))
      findings.add(rank, index, "chunk {} does not live here", action.chunk);
    if (names_unit(action) && (action.unit < 0 || action.unit >= static_cast<int>(outline.units.size())))
      findings.add(rank, index, "there is no unit {} ({} units)", action.unit, outline.units.size());
    const bool only_trains = traits_of(action.kind).steps == ActionTraits::training ||
                             action.payload == Payload::unit_gradient || is_move(action);
    if (!outline.training && only_trains) findings.add(rank, index, "has no place in an evaluation");
    const auto* collective = shape_of<CollectiveTraits>(action);
    const Members group = collective == nullptr ? Members::none : collective->members;
    if (action.group != group) findings.add(rank, index, "is for group {}, not {}", action.group, group);
    if (!is_message(action) && action.queue != traits_of(action.kind).queue)
      findings.add(rank, index, "is in queue {}, not {}", action.queue, traits_of(action.kind).queue);
    for (int earlier : action.after)
      if (earlier < 0 || earlier >= index)
        findings.add(rank, index, "waits for action {}, which is not an earlier one", earlier);
  }
}

std::vector<std::string> check(const Program& program, const Outline& outline) {
  Findings findings(program);
  if (static_cast<int>(program.ranks.size()) != outline.stages)
    return {fmt::format("the program has lists for {} ranks, the pipeline has {} stages",
                        program.ranks.size(), outline.stages)};
  check_fields(program, outline, findings);
  if (!findings.empty()) return findings.take();
  check_communication(program, findings);
  check_passes(program, outline, findings);
  check_updates(program, outline, findings);
  check_slots(program, outline, findings);
  check_gradients(program, outline, findings);
  return findings.take();
}

std::vector<std::string> check_memory(const Placement& placement, std::int64_t limit) {
  std::vector<std::string> errors;
  for (int rank = 0; limit > 0 && rank < static_cast<int>(placement.ranks.size()); ++rank) {
    const RankMemory& memory = placement.ranks[rank];
    if (memory.total() <= limit) continue;
    std::string line = fmt::format("rank {}: needs {} bytes, the limit is {} (", rank, memory.total(), limit);
    for (MemoryClass kind : memory_classes)
      line += fmt::format("{} {}, ", name_of(kind), memory.bytes[static_cast<int>(kind)]);
    line.resize(line.size() - 2);
    errors.push_back(line + ")");
  }
  return errors;
}

void require_sound(const std::vector<std::string>& errors) {
  MP_CHECK(errors.empty(), "the schedule wrote an unsound program ({} findings), the first: {}",
           errors.size(), errors.front());
}

}  // namespace mindpipe
