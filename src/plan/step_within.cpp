#include "plan/step_within.h"

#include <algorithm>
#include <optional>

#include "config/config.h"
#include "core/refusal.h"
#include "plan/group_choice.h"
#include "plan/lay_out.h"
#include "plan/memory_limits.h"
#include "plan/step_bound.h"
#include "program/schedules/pass_clock.h"

namespace mindpipe {
namespace {

/// Plans one step after another, until one fits.
class StepWithin {
 public:
  StepWithin(RunPlan& plan, const Config& config, const KnownOrder& known,
             const std::function<void(RunPlan&)>& count)
      : plan_(plan), config_(config), known_(known), count_(count), limit_(config.memory.device_limit) {}

  void choose() {
    const ScheduleKind schedule = config_.schedule.kind;
    plan_.groups = config_.schedule.groups;
    const bool is_open = plan_.groups.forward.empty() || plan_.groups.backward.empty();
    if (row_of(schedule).has_groups && is_open) return choose_groups_within();
    if (row_of(schedule).splits_backward && limit_ > 0) return choose_tapes();
    plan_.training = step(plan_.outline, schedule);
  }

 private:
  PlannedStep step(const Outline& outline, ScheduleKind schedule) const {
    return make_program(outline, schedule, plan_.network, plan_.groups, known_);
  }
  /// The plan with this step, its memory counted.
  RunPlan with(PlannedStep step) const {
    RunPlan tried = plan_;
    tried.training = std::move(step);
    count_(tried);
    return tried;
  }

  void choose_groups_within() {
    const ScheduleKind schedule = config_.schedule.kind;
    std::optional<RunPlan> fitting;
    const auto may_fit = [&](const Order& order) {
      return std::ranges::max(least_memory(plan_.outline, order, config_.train.recompute)) <= limit_;
    };
    const auto fits_with = [&](const MicroBatchGroups& groups) {
      RunPlan tried = with(make_program(plan_.outline, schedule, plan_.network, groups));
      if (!fits(tried, limit_)) return false;
      fitting = std::move(tried);
      return true;
    };
    plan_.groups = limit_ == 0
                       ? choose_groups(plan_.outline, plan_.network, plan_.groups)
                       : choose_groups(plan_.outline, plan_.network, plan_.groups, fits_with, may_fit);
    plan_.training = fitting ? std::move(fitting->training) : step(plan_.outline, schedule);
  }

  using Bytes = std::vector<std::int64_t>;

  /// What each stage can give to tapes as an outline counts them, beside all else that it holds.
  Bytes left_for_tapes(const RunPlan& plan) const {
    Bytes left;
    for (int stage = 0; stage < plan.outline.stages; ++stage) {
      const RankMemory& counted = plan.training.placement.ranks[stage];
      left.push_back(limit_ - total_of(plan.most_memory(stage)) +
                     counted.bytes[static_cast<int>(MemoryClass::activations)]);
    }
    return left;
  }

  /// Says to the schedule which tapes each stage may have: so many percent of what is left to it.
  void allow(Bytes left, int percent) {
    for (std::int64_t& bytes : left) bytes = bytes * percent / 100;
    allow_tapes(plan_.outline, config_.schedule.kind, left);
  }

  /// The schedule's own tapes, where they fit; else those that each stage has room for. What lies beside
  /// tapes depends on the order, so steps with less than that are tried too, and the shortest that fits is
  /// taken; with still less where none does. An order that is searched may be shorter with more than its own.
  RunPlan tapes_within() {
    constexpr int percents[] = {100, 97, 93, 85, 70, 55, 40, 25}, fewest_to_choose = 85;
    const ScheduleKind schedule = config_.schedule.kind;
    RunPlan best = with(step(plan_.outline, schedule));
    const bool fitted = fits(best, limit_);
    const Bytes left = left_for_tapes(best);
    const bool may_fill = schedule == ScheduleKind::searched && plan_.outline.tapes_percent == 0 &&
                          std::ranges::max(left) > own_tapes(plan_.outline, schedule);
    if (fitted ? !may_fill : std::ranges::min(left) <= 0) return best;
    for (const int percent : percents) {
      if (percent < fewest_to_choose && fits(best, limit_)) break;
      allow(left, percent);
      const bool is_nearer = improve(best, [&] { return with(step(plan_.outline, schedule)); });
      if (fitted || (percent < fewest_to_choose && !is_nearer)) break;
    }
    return best;
  }

  /// Cuts of a V know how large tapes are, and nothing of what lies beside them: where no step fits, balanced
  /// ones are tried, too.
  void choose_tapes() {
    const Outline known = plan_.outline;
    RunPlan best = tapes_within();
    if (!fits(best, limit_) && cuts_know_tapes(config_)) {
      Outline rough = known;
      lay_out_roughly(rough, config_);
      plan_.outline = known;
      plan_.outline.first_block = rough.first_block;
      improve(best, [&] { return tapes_within(); });
    }
    plan_.outline = std::move(best.outline);
    plan_.training = std::move(best.training);
  }

  /// Takes a plan that is better, if one is made: fewer tapes may break schedule.memory, which the first plan
  /// keeps. Whether it was.
  template <class Make>
  bool improve(RunPlan& best, const Make& make) const {
    std::optional<RunPlan> other;
    if (refusal_of([&] { other = make(); }) || !is_better(*other, best)) return false;
    best = std::move(*other);
    return true;
  }

  /// A step that fits is better than one that does not; of two that fit the shorter one is, of others the one
  /// that needs less.
  bool is_better(const RunPlan& tried, const RunPlan& best) const {
    const bool fits_so = fits(tried, limit_), fitted = fits(best, limit_);
    if (fits_so != fitted) return fits_so;
    return fits_so ? length_of(tried) < length_of(best) : most_of(tried) < most_of(best);
  }

  static std::int64_t most_of(const RunPlan& plan) {
    std::int64_t most = 0;
    for (int stage = 0; stage < plan.outline.stages; ++stage)
      most = std::max(most, total_of(plan.most_memory(stage)));
    return most;
  }

  static std::int64_t length_of(const RunPlan& plan) { return plan.training.expected.step; }

  RunPlan& plan_;
  const Config& config_;
  const KnownOrder& known_;
  const std::function<void(RunPlan&)>& count_;
  std::int64_t limit_;
};

}  // namespace

void allow_tapes(Outline& outline, ScheduleKind schedule, const std::vector<std::int64_t>& bytes) {
  outline.tapes_limit = std::ranges::max(bytes);
  const std::int64_t most = most_tapes(outline, schedule);
  outline.fewer_tapes.clear();
  for (const std::int64_t of_stage : bytes)
    outline.fewer_tapes.push_back(std::max<std::int64_t>(0, most - of_stage));
}

void plan_step_within(RunPlan& plan, const Config& config, const KnownOrder& known,
                      const std::function<void(RunPlan&)>& count) {
  StepWithin(plan, config, known, count).choose();
}

}  // namespace mindpipe
