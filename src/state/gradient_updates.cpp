#include "state/gradient_updates.h"

#include "comm/fault_points.h"
#include "core/sum_lists.h"
#include "state/loss_sums.h"

namespace mindpipe {

GradientUpdates::GradientUpdates(Stage& stage, Residency& residency, const TrainConfig& train,
                                 const OptimizerConfig& optimizer, DeviceKind device, Groups groups)
    : stage_(stage),
      residency_(residency),
      train_(train),
      optimizer_(optimizer),
      device_(device),
      groups_(groups),
      folds_(stage, groups.tensor),
      sums_(stage, residency, groups.data) {}

void GradientUpdates::decide_scopes(const DecisionScopes& scopes, std::int64_t most_tensors) {
  decisions_.emplace(stage_.context().backend, groups_, scopes, most_tensors,
                     residency_.shares().is_sharded());
  residency_.count_by(*decisions_);
}

void GradientUpdates::allocate_for_steps() {
  allocate_for_reading();
  decide_steps();
}

void GradientUpdates::take_units() {
  if (is_left_out("moves", "decide")) return;
  const Decisions::Kept kept = decisions_->kept();
  measured_ = nullptr;
  squares_.reset();
  decisions_.reset();
  decide_steps();
  if (!is_left_out("moves", "applied")) decisions_->go_on_from(kept);
}

void GradientUpdates::decide_steps() {
  const DecisionScopes scopes = Decisions::of_step(stage_, residency_.shares().all());
  decide_scopes(scopes, scopes.begin()->second.tensors);
  if (const auto size =
          squares_size(train_, device_, stage_.layout(), stage_.model(), residency_.shares().all()))
    squares_.emplace(stage_, residency_.shares().all(), groups_, *size, residency_.shares().is_sharded());
}

void GradientUpdates::allocate_for_subnets(std::int64_t most_tensors) {
  allocate_for_reading();
  decide_scopes(Decisions::of_each(residency_.shares().all()), most_tensors);
}

void GradientUpdates::measure(bool measures) {
  measures_ = squares_ && measures;
  if (measures_) squares_->begin();
  folds_.measure(measures_ ? &*squares_ : nullptr);
}

/// Use 0 += the others, in model order.
void GradientUpdates::add_uses() {
  for (int index : stage_.local_units()) {
    const UnitOptimizer& optimizer = residency_.shares().of(index);
    for (const auto& [left, right] : additions_in_order(stage_.unit(index).uses())) {
      const Tensor sum = optimizer.gradient_share(left);
      if (sum.count() > 0 && !is_left_out("gradients", "add_uses"))
        stage_.context().backend.add({sum, optimizer.gradient_share(right), sum});
    }
  }
}

StepRule GradientUpdates::rule(std::int64_t valid) const {
  return {1.0 / static_cast<double>(targets_of_step(stage_)), static_cast<double>(valid), train_.clip,
          static_cast<float>(optimizer_.beta1), static_cast<float>(optimizer_.beta2)};
}

std::int64_t GradientUpdates::decide_step(const Tensor& losses, std::int64_t valid) {
  if (measures_) measured_ = &squares_->finish();
  add_uses();
  std::vector<std::int64_t> of_batch{valid};
  groups_.data.sum_integers(of_batch);
  losses_->sum_over_data(losses, decisions_->loss());
  decisions_->decide_step(rule(of_batch[0]));
  return of_batch[0];
}

void GradientUpdates::update(int unit, double rate) {
  const Layout& layout = stage_.layout();
  if (!is_left_out("units", "update"))
    residency_.shares().of(unit).update(stage_.context().backend, rate, decisions_->of(unit),
                                        layout.batch / layout.samples);
  residency_.updated(unit);
}

}  // namespace mindpipe
