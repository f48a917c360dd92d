#pragma once
#include <string>

#include "plan/layout_search.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// How fast a supernet would be on all lanes x stages of as many ranks, with one cut and with cuts of
/// subnets' own, on paper: which is the fastest, and why. Empty where there is nothing to choose.
std::string lanes_text(const Config& config, int ranks);

/// The first lines of what plan --search says of a supernet: the layout in `words`, its speed, and where its
/// time goes.
std::string subnet_search_text(const Config& chosen, const RunPlan& plan, int ranks,
                               const LayoutCandidate& best, const std::string& words);

/// What a supernet's moves cost on paper and what they bring; where passes do not hide them, the batch that
/// would. `is_warning`: it is not worth it. No text where nothing moves.
struct MovesText {
  std::string text;
  bool is_warning = false;
};
MovesText moves_text(const Config& config, const RunPlan& plan);

}  // namespace mindpipe
