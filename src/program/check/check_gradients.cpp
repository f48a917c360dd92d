#include <map>
#include <set>

#include "program/check/checker_parts.h"
#include "program/check/ended_before.h"

namespace mindpipe {
namespace {

/// Whose gradient is in a slab, the last part of its sum over data, and whether this rank's share moves out.
struct Holder {
  UnitUse use{-1, -1};
  int reduce = -1;  // -1: some parts are yet to come
  bool moves_out = false;
};

std::string text_of(const UnitUse& use) { return fmt::format("unit {} in block {}", use.unit, use.block); }

class GradientCheck : RankCheck {
 public:
  GradientCheck(const Program& program, const Outline& outline, int rank, Findings& findings)
      : RankCheck(program, outline, rank, findings), ended_(list_) {
    for (const Action& action : list_)
      if (action.kind == ActionKind::reduce) slab_of_.try_emplace(use_of(action), action.slab);
  }

  void run() {
    for (; index_ < count(); ++index_) {
      if (adds_to_gradients(action())) {
        for (const UnitUse& use : outline_.uses_in(action().first, action().last)) adds(use);
      } else if (action().clears) {
        wrong("adds to no gradients that it could zero");
      }
      if (action().kind == ActionKind::reduce && outline_.sharded_gradients) reduces(action());
    }
  }

 private:
  static UnitUse use_of(const Action& reduce) { return {reduce.unit, reduce.first}; }

  void adds(const UnitUse& use) {
    const bool first = begun_.insert(use).second;
    if (first && !action().clears) wrong("adds to the gradient of {} that nobody has zeroed", text_of(use));
    if (!first && action().clears) wrong("zeroes the gradient of {} that others have added to", text_of(use));
    const auto slab = slab_of_.find(use);
    if (!outline_.sharded_gradients || slab == slab_of_.end()) return;
    Holder& holder = holders_[slab->second];
    if (holder.use == use) return;
    const bool taken = holder.use.unit >= 0;
    if (!first)
      wrong("adds to the gradient of {} in slab {}, which {} has taken over", text_of(use), slab->second,
            text_of(holder.use));
    else if (taken && (holder.reduce < 0 || !ended_(holder.reduce, index_)))
      wrong("writes gradient slab {} while the sum of {} over data may still read it", slab->second,
            text_of(holder.use));
    else if (taken && !holder.moves_out)
      wrong("writes gradient slab {}, where this rank's share of {} stays until its update", slab->second,
            text_of(holder.use));
    holder = {use};
  }

  void reduces(const Action& action) {
    if (action.slab < 0) return wrong("names no gradient slab");
    if (action.slab != slab_of_.at(use_of(action)))
      wrong("names another gradient slab than the parts before it");
    Holder& holder = holders_[action.slab];
    if (holder.use != use_of(action))
      return wrong("finds the gradient of {} in slab {}", text_of(holder.use), action.slab);
    if (action.part + 1 == action.parts) holder.reduce = index_;
    holder.moves_out = action.apart >= 0;
  }

  EndedBefore ended_;
  std::map<UnitUse, int> slab_of_;
  std::map<int, Holder> holders_;
  std::set<UnitUse> begun_;
};

}  // namespace

void check_gradients(const Program& program, const Outline& outline, Findings& findings) {
  if (outline.training) check_every_rank<GradientCheck>(program, outline, findings);
}

}  // namespace mindpipe
