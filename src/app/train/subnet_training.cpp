#include "app/train/subnet_training.h"

#include <algorithm>
#include <sstream>

#include "app/plan/plan_lanes.h"
#include "app/plan/plan_subnets.h"
#include "config/config.h"
#include "core/log.h"
#include "optim/rate.h"
#include "runtime/diagnose.h"

namespace mindpipe {

void SubnetTraining::begin() {
  if (run_.is_rank_0()) tell_costs();
  if (directory_ != nullptr) log_.name_choices(stream_of(config_, done_));
  SubnetFeed& subnets = *worker_.subnets();
  subnets.answer_to(*this);
  if (goes_on()) subnets.begin(stream_of(config_, done_), done_);
}

/// What settings cost that are as they are for other reasons.
void SubnetTraining::tell_costs() const {
  const RunPlan& plan = worker_.plan();
  info("{}", cost_of_window(plan.subnets->paper));
  if (const MovesText moves = moves_text(config_, plan); moves.is_warning) {
    std::istringstream lines(moves.text);
    for (std::string line; std::getline(lines, line);) warning("{}", line);
  }
  const std::string stages = stages_left_out(config_);
  if (!stages.empty()) warning("{}", stages);
}

/// The end, or the next place before it where subnets are evaluated or saved.
std::int64_t SubnetTraining::next_drain() const {
  std::int64_t drain = last_step(config_);
  const auto stop_at = [&](std::int64_t every) {
    if (every > 0) drain = std::min(drain, (done_ / every + 1) * every);
  };
  if (validation_ != nullptr) stop_at(config_.train.evaluate_every);
  if (row_of(config_.device.kind).computes) stop_at(config_.checkpoint.every);
  if (replicas_) stop_at(config_.guard.replicas_every);
  return drain;
}

void SubnetTraining::train() {
  done_ = worker_.subnets()->train_to(next_drain());
  limit_ = run_.step_limit();
}

std::string SubnetTraining::of_what_evaluated() const {
  return fmt::format(" of {} subnets", config_.supernet.evaluate_subnets);
}

/// Three stretches are under way, and a window is brought to its end.
std::int64_t SubnetTraining::ahead() const {
  return 3 * SubnetFeed::longest_stretch + config_.supernet.window;
}

void SubnetTraining::agree() {
  // One more than the subnet behind which there is trouble; 0: there is none.
  wishes_.ask(done_, ahead(),
              {guard_.is_in_trouble() ? static_cast<std::uint64_t>(guard_.found_at()) + 1 : 0});
  wishes_.hear(newest());
  if (const std::uint64_t behind_trouble = wishes_.own().front(); behind_trouble > 0)
    fail(Exit::diverged, "subnet {} is one of {} in a row that updated nothing (guard.skips); {}",
         behind_trouble - 1, config_.guard.skips, diagnose_weights(worker_));
}

/// Every stage updates by itself, so every rank counts the targets of the whole batch.
void SubnetTraining::load(const Subnet& subnet, StepInput& input) {
  const std::int64_t first = first_sample(subnet.id);
  faults_.before(subnet.id, first);
  worker_.inputs().load_whole(corpus_, first, input);
  input.rate = rate_at(config_.optimizer.rate, subnet.id, config_.train.steps);
}

std::int64_t SubnetTraining::count(std::int64_t subnet) {
  return worker_.inputs().count_whole(corpus_, first_sample(subnet));
}

void SubnetTraining::admits(std::int64_t first, std::int64_t end) {
  const auto count = static_cast<double>(end - first);
  run_.watchdog().arm(step_limit(config_.watchdog.step * count, report_->seconds_each() * count,
                                 worker_.plan().subnets->paper.seconds_each() * count),
                      fmt::format("subnets {} to {}", first, end - 1), "watchdog.step");
}

bool SubnetTraining::wishes_to_drain() {
  return wishes_.to_stop(done_, ahead()) != Wishes::no_stop || saves_.due_by_time() || guard_.is_in_trouble();
}

void SubnetTraining::hear(const SubnetScalars& scalars) {
  log_.add(scalars);
  if (comparison_ != nullptr) comparison_->see(scalars.subnet + 1, {{"loss", scalars.loss()}}, false);
  if (energy_ != nullptr) energy_->look();
  guard_.hear(scalars);
}

}  // namespace mindpipe
