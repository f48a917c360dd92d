#pragma once
#include "plan/run_plan.h"

namespace mindpipe {

/// What moves of a supernet's units cost on paper, and how much faster lanes and own cuts are.
struct MovesOnPaper {
  double ratio = 0;          ///< r, below
  double elsewhere = 0;      ///< share of the units in use whose last user ran on another rank
  double lost = 0;           ///< share of the time that instant moves would save
  double over_one_lane = 1;  ///< how many times as fast as one lane of as many stages
  double over_one_cut = 1;   ///< how many times as fast as one cut for all subnets
  static constexpr double hidden = 0.02;
  bool are_hidden() const { return lost <= hidden; }
};

/// r: the time that the units of a subnet's stage travel, one behind the other, divided by the time of their
/// passes; the mean over all candidates.
double move_ratio(const Outline& outline, const Network& network);
/// The part of a plan's time that moves cost.
double lost_to_moves(const Config& config, const RunPlan& plan);
MovesOnPaper moves_on_paper(const Config& config, const RunPlan& plan);

/// The smallest batch, of more micro-batches as large as they are, that hides moves; 0: not even one eight
/// times as large.
int batch_that_hides_moves(const Config& config, const RunPlan& plan);

}  // namespace mindpipe
