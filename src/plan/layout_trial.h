#pragma once
#include <array>
#include <optional>
#include <vector>

#include "plan/choose_tapes.h"
#include "plan/layout_search.h"
#include "plan/step_bound.h"

namespace mindpipe {

/// How often the fates of a layout's tapes are chosen, until it fits to the byte.
inline constexpr int most_choices = 6;
/// Shares of a stage's passes that are tried as what hides its copies; 0: nothing is swapped. A step of few
/// micro-batches waits for few of its copies, and may have more than its passes hide.
inline constexpr std::array hiding_shares{0.0, 0.3, 0.6, 0.9, 3.0, TapeRules::smallest};

/// A layout on paper, ready to be bounded with one cut or another.
struct LayoutSketch {
  const Outline& outline;
  Network network;
  StepBound step;
  bool fills;
  bool open_cuts;  ///< a layout without cuts has others than the outline has, which nobody knows yet

  LayoutSketch(const Config& known, const Outline& laid_out, bool roughly = false);
  LayoutSketch(const LayoutSketch&) = delete;
  LayoutSketch& operator=(const LayoutSketch&) = delete;

  std::vector<int> first_block(const LayoutChoice& layout) const;
  LayoutCandidate candidate(LayoutChoice layout, const std::vector<int>& first_block) const;
};

/// What the simulator says of one layout, without a proof of its lists and what its ranks hold (a fraction of
/// a whole plan's work), but for groups, which follow from that; with weight gradients that are put off
/// fitted roughly, which is a percent off at most where that was looked at. One that costs more than `most`
/// at least is left there; 0: none.
void time_layout(const Config& config, LayoutCandidate& candidate, PricedBlocks& blocks,
                 const StepPrice& price, double most);

/// Times a layout that may cost `most` at most, and plans it whole if it is to be the best under a limit:
/// then it has to fit.
void try_layout(const Config& config, LayoutCandidate& candidate, const StepPrice& price, double best,
                double most, PricedBlocks& blocks);

/// A layout that does not fit with as many more blocks computed again or swapped as it takes, one for each
/// share of the passes that may hide copies; none: nothing is enough.
std::vector<LayoutCandidate> with_other_tapes(const Config& config, const LayoutCandidate& full,
                                              const SearchFreedom& free, PricedBlocks& blocks);

}  // namespace mindpipe
