#include "program/check/checker.h"

#include "core/check.h"
#include "program/check/check_communication.h"
#include "program/check/list_check.h"
#include "program/check/tree_proof.h"

namespace mindpipe {
namespace {

/// Where the sums over data of a list find the gradients of uses that take turns in slabs.
std::map<UnitUse, int> slabs_of(const std::vector<Action>& list, const Outline& outline) {
  std::map<UnitUse, int> slabs;
  for (const Action& action : list)
    if (outline.sharded_gradients && action.kind == ActionKind::reduce)
      slabs.try_emplace({action.unit, action.first}, action.slab);
  return slabs;
}

}  // namespace

std::vector<std::string> check(const Program& program, const Outline& outline) {
  if (static_cast<int>(program.ranks.size()) != outline.stages)
    return {fmt::format("the program has lists for {} ranks, the pipeline has {} stages",
                        program.ranks.size(), outline.stages)};
  Findings findings;
  const std::string fault = fault_of_tree(outline.data * outline.shards, outline.data);
  if (!fault.empty()) findings.add("{}", fault);
  check_partners(program, findings);
  std::vector<std::string> errors = findings.take();
  for (int rank = 0; rank < outline.stages; ++rank) {
    const std::vector<Action>& list = program.ranks[rank];
    const std::vector<std::string> more = ListCheck(outline, rank, slabs_of(list, outline)).check(list, true);
    errors.insert(errors.end(), more.begin(), more.end());
  }
  if (errors.empty()) return errors;
  explain_standstill(program, findings);
  const std::vector<std::string> reasons = findings.take();
  errors.insert(errors.end(), reasons.begin(), reasons.end());
  return errors;
}

CheckedStretch prove_list(ListStretch list, const Outline& outline, int rank) {
  require_tree(outline.data * outline.shards, outline.data);
  ListCheck books(outline, rank, slabs_of(list.actions, outline));
  return books.prove(std::move(list), true);
}

void require_sound(const std::vector<std::string>& errors) {
  MP_CHECK(errors.empty(), "the schedule wrote an unsound program ({} findings), the first: {}",
           errors.size(), errors.front());
}

}  // namespace mindpipe
