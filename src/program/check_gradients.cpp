#include <map>
#include <set>

#include "program/checker_parts.h"
#include "program/ended_before.h"

namespace mindpipe {
namespace {

/// Who is in a slab: its block, the last part of its sum over data, and whether this rank's part of the sum
/// has moved out.
struct Holder {
  int block = -1, reduce = -1;  // -1: some parts are yet to come
  bool moves_out = false;
};

class GradientChecker {
 public:
  GradientChecker(const Program& program, const Outline& outline, int rank, Findings& findings)
      : list_(program.ranks[rank]), outline_(outline), rank_(rank), findings_(findings), ended_(list_) {
    for (const Action& action : list_)
      if (action.kind == ActionKind::reduce) slab_of_.try_emplace(action.first, action.slot);
  }

  void run() {
    for (int index = 0; index < static_cast<int>(list_.size()); ++index) {
      const Action& action = list_[index];
      if (is_backward(action) || action.kind == ActionKind::backward_weight) {
        for (int block = action.first; block < action.last; ++block)
          if (outline_.blocks[block].values > 0) adds(index, block);
      } else if (action.clears) {
        findings_.add(rank_, index, "adds to no gradients that it could zero");
      }
      if (action.kind == ActionKind::reduce && outline_.sharded_gradients) reduces(index, action);
    }
  }

 private:
  void adds(int index, int block) {
    const bool first = begun_.insert(block).second;
    if (first && !list_[index].clears)
      findings_.add(rank_, index, "adds to gradients of block {} that nobody has zeroed", block);
    if (!first && list_[index].clears)
      findings_.add(rank_, index, "zeroes gradients of block {} that others have added to", block);
    const auto slab = slab_of_.find(block);
    if (!outline_.sharded_gradients || slab == slab_of_.end()) return;
    Holder& holder = holders_[slab->second];
    if (holder.block == block) return;
    if (!first)
      findings_.add(rank_, index, "adds to gradients of block {} in slab {}, which block {} has taken over",
                    block, slab->second, holder.block);
    else if (holder.block >= 0 && (holder.reduce < 0 || !ended_(holder.reduce, index)))
      findings_.add(rank_, index,
                    "writes gradient slab {} while the sum of block {} over data may still read it",
                    slab->second, holder.block);
    else if (holder.block >= 0 && !holder.moves_out)
      findings_.add(rank_, index,
                    "writes gradient slab {}, where this rank's part of block {} stays until its update",
                    slab->second, holder.block);
    holder = {block};
  }

  void reduces(int index, const Action& action) {
    if (action.slot < 0) return findings_.add(rank_, index, "names no gradient slab");
    if (action.slot != slab_of_.at(action.first))
      findings_.add(rank_, index, "names another gradient slab than the parts before it");
    Holder& holder = holders_[action.slot];
    if (holder.block != action.first)
      return findings_.add(rank_, index, "finds the gradients of block {} in slab {}", holder.block,
                           action.slot);
    if (action.part + 1 == action.parts) holder.reduce = index;
    holder.moves_out = action.to_slot >= 0;
  }

  const std::vector<Action>& list_;
  const Outline& outline_;
  int rank_;
  Findings& findings_;
  EndedBefore ended_;
  std::map<int, int> slab_of_;
  std::map<int, Holder> holders_;
  std::set<int> begun_;
};

}  // namespace

void check_gradients(const Program& program, const Outline& outline, Findings& findings) {
  if (!outline.training) return;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
    GradientChecker(program, outline, rank, findings).run();
}

}  // namespace mindpipe
