#include <fmt/core.h>

#include "core/check.h"
#include "program/causal/causal_planner.h"

namespace mindpipe {

/// What keeps a subnet from going on on a rank; empty: it has nothing to begin there.
std::string CausalPlanner::awaited_by(std::int64_t id, int rank) const {
  const StageWork& work = subnets_.at(id, rank);
  if (work.backwards < work.gradients) return "a gradient slab";
  if (work.forwards == work.arrived) return "";
  if (!has_version(id, rank))
    return fmt::format("the update of window {} of what all share", id / rules_.window - 2);
  if (!may_forward(id, rank))
    return work.missing > 0 ? fmt::format("{} units, which older subnets have used", work.missing)
                            : std::string("the update of an older group");
  return "a slot";
}

/// The oldest subnet waits for no other, and rooms are kept for it: no setting of a run leads here.
void CausalPlanner::stands_still() const {
  std::int64_t id = subnets_.oldest();
  std::string waits;
  for (; id < admitted_; ++id) {  // of a group that is updated together another one may be what stands
    for (int stage = count_; stage-- > 0;) {
      const int rank = outline_.rank_of_subnet(id, stage);
      if (const std::string awaited = awaited_by(id, rank); !awaited.empty())
        waits += fmt::format("{}for {} on rank {} (lane {}, stage {})", waits.empty() ? "" : ", and ",
                             awaited, rank, outline_.lane_of_rank(rank), stage);
    }
    if (!waits.empty()) break;
  }
  fail(Exit::internal,
       "everything stands still in the plan: subnet {} has not ended, subnet {} waits {}, and nothing is "
       "under "
       "way that could bring it. No plan should do this, so it is a mistake of the planner's: please report "
       "it "
       "with the run's config.yaml. Another supernet.admission, supernet.slots or supernet.prices makes "
       "another plan and changes no bit of the results",
       subnets_.oldest(), id, waits.empty() ? "for what nobody sends" : waits);
}

}  // namespace mindpipe
