#include "runtime/plans_by_cut.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace mindpipe {

PlansByCut::PlansByCut(RunPlan first, std::vector<PlannedMove> moves) : present_(std::move(first)) {
  kept_.emplace_back();
  add(std::move(moves));
}

void PlansByCut::go_on_with(std::vector<PlannedMove> moves) {
  kept_.clear();
  kept_.emplace_back();
  shown_ = 0;
  add(std::move(moves));
}

void PlansByCut::add(std::vector<PlannedMove> moves) {
  for (PlannedMove& move : moves) {
    kept_.push_back({move.step, std::move(move.during)});
    kept_.push_back({move.step, std::move(move.after)});
  }
}

const PlansByCut::Kept* PlansByCut::move_of_step(std::int64_t step) const {
  for (std::size_t place = 1; place < kept_.size(); place += 2)
    if (kept_[place].step == step) return &kept_[place];
  return nullptr;
}

void PlansByCut::begin_move(std::int64_t done) {
  const auto place = static_cast<std::size_t>(move_of_step(done + 1) - kept_.data());
  MP_CHECK(shown_ + 1 == place, "step {} moves blocks from another cut than the present one", done + 1);
  show(place);
}

bool PlansByCut::go_to(std::int64_t done) {
  std::size_t place = 0;
  while (place + 2 < kept_.size() && kept_[place + 2].step <= done) place += 2;
  const bool is_other = place != shown_;
  show(place);
  return is_other;
}

void PlansByCut::show(std::size_t place) {
  if (place == shown_) return;
  std::swap(present_, kept_[shown_].plan);
  std::swap(present_, kept_[place].plan);
  shown_ = place;
}

}  // namespace mindpipe
