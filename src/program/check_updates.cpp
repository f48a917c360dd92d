#include <algorithm>
#include <map>
#include <set>

#include "program/checker_parts.h"

namespace mindpipe {
namespace {

/// The entries that a rank's update passes through, for each block.
struct UpdatePath {
  int last_backward = -1, reduce = -1, update = -1, gather = -1;  ///< of the parts the newest
};

/// Parts come one after the other, each once; `newest` is the one before, if there is one.
void check_part(const std::vector<Action>& list, int rank, int index, int newest, Findings& findings) {
  const Action& action = list[index];
  const int due = newest < 0 ? 0 : list[newest].part + 1;
  if (due >= action.parts) findings.add(rank, index, "runs a second time");
  else if (action.part != due || (newest >= 0 && list[newest].parts != action.parts))
    findings.add(rank, index, "comes out of turn (part {} is due)", due + 1);
}

bool is_whole(const std::vector<Action>& list, int newest) {
  return newest >= 0 && list[newest].part + 1 == list[newest].parts;
}

void check_rank(const Program& program, const Outline& outline, int rank, Findings& findings) {
  const auto& list = program.ranks[rank];
  std::map<int, UpdatePath> paths;
  std::vector<int> scalars, exchanged;  // of a tied table
  int last_pass = -1;
  for (int index = 0; index < static_cast<int>(list.size()); ++index) {
    const Action& action = list[index];
    UpdatePath& path = paths[action.first];
    const bool pass = action.kind == ActionKind::forward || is_backward(action) ||
                      action.kind == ActionKind::backward_weight;
    if (pass) last_pass = index;
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight)
      for (int block = action.first; block < action.last; ++block) paths[block].last_backward = index;
    switch (action.kind) {
      case ActionKind::reduce:
        check_part(list, rank, index, path.reduce, findings);
        if (path.last_backward < 0 || !waits_for(action, path.last_backward))
          findings.add(rank, index, "does not wait for the block's backward");
        path.reduce = index;
        break;
      case ActionKind::send:
        if (action.payload == Payload::unit &&
            (!is_whole(list, path.reduce) || !waits_for(action, path.reduce)))
          findings.add(rank, index, "does not wait for its sum over data");
        [[fallthrough]];
      case ActionKind::receive:
        if (action.payload == Payload::unit) exchanged.push_back(index);
        break;
      case ActionKind::sum_scalar:
        scalars.push_back(index);
        break;
      case ActionKind::update:
        if (path.update >= 0) findings.add(rank, index, "is updated a second time");
        if (scalars.empty() || !waits_for(action, scalars.back()))
          findings.add(rank, index, "does not wait for the scalars");
        path.update = index;
        break;
      case ActionKind::gather:
        if (path.update < 0 || !waits_for(action, path.update))
          findings.add(rank, index, "does not wait for the update");
        check_part(list, rank, index, path.gather, findings);
        path.gather = index;
        break;
      default:
        break;
    }
  }
  if (scalars.size() != 1)
    return findings.add_for_rank(rank, "{} sums of scalars in a step (there is one)", scalars.size());
  const Action& scalar = list[scalars[0]];
  const std::set<int> waited_for(scalar.after.begin(), scalar.after.end());
  if (!waited_for.count(last_pass)) findings.add(rank, scalars[0], "does not wait for the last pass");
  for (int message : exchanged)
    if (!waited_for.count(message))
      findings.add(rank, scalars[0], "does not wait for the tied table's gradient (action {})", message);
  for (int chunk = 0; outline.training && chunk < outline.all_chunks(); ++chunk) {
    if (outline.rank_of(chunk) != rank) continue;
    for (int block = outline.first_block[chunk]; block < outline.first_block[chunk + 1]; ++block) {
      if (outline.blocks[block].values == 0) continue;
      const UpdatePath& path = paths[block];
      if (!is_whole(list, path.reduce))
        findings.add_for_rank(
            rank, "the gradients of block {} are never summed over data, or not all of them", block);
      else if (path.reduce < path.last_backward)
        findings.add(rank, path.reduce, "comes before the block's last backward");
      else if (!waited_for.count(path.reduce))
        findings.add(rank, scalars[0], "does not wait for the sum of block {}", block);
      if (path.update < 0) findings.add_for_rank(rank, "block {} is never updated", block);
      if (outline.sharded_optimizer && !is_whole(list, path.gather))
        findings.add_for_rank(rank, "the values of block {} are never gathered, or not all of them", block);
    }
  }
}

/// Every rank that uses a tied table gets the gradients of all uses elsewhere.
void check_tied(const Program& program, const Outline& outline, Findings& findings) {
  for (const TiedTable& table : outline.tied)
    for (int here : table.blocks)
      for (int use : table.blocks) {
        const int rank = outline.rank_of(outline.chunk_of(here)),
                  owner = outline.rank_of(outline.chunk_of(use));
        if (rank == owner) continue;
        const auto& list = program.ranks[rank];
        std::set<int> arrive;
        int parts = 1;
        for (const Action& action : list)
          if (action.kind == ActionKind::receive && action.payload == Payload::unit && action.first == use &&
              action.peer == owner)
            arrive.insert(action.part), parts = action.parts;
        if (static_cast<int>(arrive.size()) != parts)
          findings.add_for_rank(
              rank,
              "the tied table's gradient of its use in block {} never arrives from rank {}, or not all of it",
              use, owner);
      }
}

}  // namespace

void check_updates(const Program& program, const Outline& outline, Findings& findings) {
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    check_rank(program, outline, rank, findings);
  if (outline.training) check_tied(program, outline, findings);
}

}  // namespace mindpipe
