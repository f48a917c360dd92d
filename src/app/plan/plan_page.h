#pragma once
#include <string>
#include <vector>

#include "app/plan/plan_comparison.h"

namespace mindpipe {

/// A page about plans that were compared, without scripts and without anything from elsewhere: `text`, and
/// pictures of the best plan's step, of its memory, of all layouts, of batches and of numbers of ranks.
std::string plan_page(const std::vector<ComparedPlan>& plans, const PlanGoal& goal, const SearchFreedom& free,
                      const std::string& text);

}  // namespace mindpipe
