#pragma once
#include "plan/moves_of_run.h"

namespace mindpipe {

/// The plans that a run goes through, from cut to cut. One of them is the present one.
class PlansByCut {
 public:
  PlansByCut(RunPlan first, std::vector<PlannedMove> moves);

  /// Lets these moves come next, the first from the present cut; forgets plans of cuts before.
  void go_on_with(std::vector<PlannedMove> moves);
  /// The present plan, which lies in one place for good.
  const RunPlan& present() const { return present_; }
  /// The plan of the step behind `done` steps, if blocks move in it; or null.
  const RunPlan* move_behind(std::int64_t done) const {
    const Kept* move = move_of_step(done + 1);
    return move == nullptr ? nullptr : &move->plan;
  }
  /// Goes on to the plan of the step behind `done` steps, in which blocks move, and then to the one behind
  /// it.
  void begin_move(std::int64_t done);
  void end_move() { show(shown_ + 1); }
  /// Goes to the plan that a run has behind `done` steps. Gives back whether that is another one.
  bool go_to(std::int64_t done);

 private:
  struct Kept {
    std::int64_t step = 0;  ///< the moving step; its plan, or the one behind it
    RunPlan plan;
  };
  const Kept* move_of_step(std::int64_t step) const;
  void add(std::vector<PlannedMove> moves);
  void show(std::size_t place);

  RunPlan present_;
  std::vector<Kept> kept_;  ///< the first, then those of each move; empty at the place of the present one
  std::size_t shown_ = 0;
};

}  // namespace mindpipe
