#pragma once
#include <string>
#include <vector>

#include "app/plan/plan_goal.h"
#include "config/config.h"
#include "plan/layout_search.h"
#include "plan/priced_blocks.h"

namespace mindpipe {

/// The layouts of one number of ranks and one batch.
struct ComparedPlan {
  PlanSize size;
  Config config;        ///< with the batch, as it is on paper
  LayoutSearch search;  ///< without a best where no layout is allowed or fits
  PricedBlocks blocks;  ///< blocks of the search

  bool has_layout() const { return !search.best.empty(); }
  const LayoutCandidate& best() const { return search.all[search.best.front()]; }
};

/// Searches the layouts of each number of ranks and each batch that were asked for: of ranks the first, its
/// doubles, and the last. `wanted`: layouts that are simulated at least.
std::vector<ComparedPlan> compare_plans(const Config& config, int ranks, int most_ranks, const PlanGoal& goal,
                                        const SearchFreedom& free, int wanted);

/// The place of the best plan, at `times` the noise scale; of equal ones that of fewer ranks, then of the
/// smaller batch. -1: none has a layout.
int best_plan(const std::vector<ComparedPlan>& plans, const PlanGoal& goal, double times = 1);

/// What the plans take for each sample that a step is worth, line by line; what another noise scale would
/// change, and what the chosen batch asks of the learning rate. `given_batch`: the configuration's.
std::string comparison_text(const std::vector<ComparedPlan>& plans, const PlanGoal& goal,
                            const SearchFreedom& free, int given_batch);
/// What a step of the best layout takes beside time; empty: it has none.
std::string spent_text(const ComparedPlan& plan, const PlanGoal& goal);
/// The plans as members of a JSON array.
std::string comparison_json(const std::vector<ComparedPlan>& plans, const PlanGoal& goal,
                            const SearchFreedom& free);

}  // namespace mindpipe
