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
#include "program/step_on_paper.h"

namespace mindpipe {
namespace {

std::int64_t most_of(const RunPlan& plan) {
  std::int64_t most = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, total_of(plan.most_memory(stage)));
  return most;
}

std::int64_t length_of(const RunPlan& plan) { return plan.training.expected.step; }

/// Leaves as few tapes as can be.
Order with_whole_backwards(const Outline& outline, const Config& config) {
  return make_order(config.schedule.kind, request_of(outline));
}

/// Bytes that each stage takes beside tapes, those left out that depend on the order: buffers between stages
/// and slabs of sharded gradients.
std::vector<std::int64_t> beside_any_order(const RunPlan& plan) {
  std::vector<std::int64_t> beside;
  for (int stage = 0; stage < plan.outline.stages; ++stage) {
    const BytesByClass& bytes = plan.most_memory(stage);
    beside.push_back(total_of(bytes));
    for (const MemoryClass kind : {MemoryClass::activations, MemoryClass::boundary})
      beside.back() -= bytes[static_cast<int>(kind)];
    for (const std::int64_t slab : plan.training.placement.ranks[stage].slabs)
      beside.back() -= plan.outline.sharded_gradients ? static_cast<std::int64_t>(aligned(slab)) : 0;
  }
  return beside;
}

/// Whether an order's tapes do not fit beside that.
bool is_too_large(const Order& order, const Outline& outline, const Config& config,
                  const std::vector<std::int64_t>& beside_any) {
  const std::vector<std::int64_t> tapes = least_tapes(outline, order, config.train.recompute);
  for (std::size_t stage = 0; stage < beside_any.size(); ++stage)
    if (beside_any[stage] + tapes[stage] > config.memory.device_limit) return true;
  return false;
}

/// Whether no order fits, by the plan with the fewest tapes: backwards in halves leave no fewer.
bool nothing_fits(const RunPlan& fewest, const Config& config) {
  return is_too_large(with_whole_backwards(fewest.outline, config), fewest.outline, config,
                      beside_any_order(fewest));
}

/// A step that fits is better than one that does not; of two that fit the shorter one is, of others the one
/// that needs less.
bool is_better(const RunPlan& tried, const RunPlan& best, std::int64_t limit) {
  const bool fits_so = fits(tried, limit), fitted = fits(best, limit);
  if (fits_so != fitted) return fits_so;
  return fits_so ? length_of(tried) < length_of(best) : most_of(tried) < most_of(best);
}

/// Plans one step after another, until one fits.
class StepWithin {
 public:
  StepWithin(RunPlan& plan, const Config& config, const KnownOrder& known,
             const std::function<void(RunPlan&)>& count, const IsTooLong& is_too_long)
      : plan_(plan),
        config_(config),
        known_(known),
        count_(count),
        is_too_long_(is_too_long),
        limit_(config.memory.device_limit) {}

  void choose() {
    const ScheduleKind schedule = config_.schedule.kind;
    plan_.groups = config_.schedule.groups;
    const bool is_open = plan_.groups.forward.empty() || plan_.groups.backward.empty();
    if (row_of(schedule).has_groups && is_open) return choose_groups_within();
    if (row_of(schedule).splits_backward && limit_ > 0) return choose_tapes();
    plan_.training = step(plan_.outline, schedule);
    count_(plan_);
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

  /// Nobody asks whether groups fit whose steps are too long until a shorter one does, before which they
  /// would be taken. Without a limit the first ones would be.
  void choose_groups_within() {
    std::optional<RunPlan> fitting;
    std::vector<MicroBatchGroups> too_long;
    std::vector<std::int64_t> beside;  // known once groups have been planned
    const auto fits_so = [&](StepOnPaper& step) {
      RunPlan tried = with(step.write());
      beside = beside_any_order(tried);
      if (!fits(tried, limit_)) return false;
      fitting = std::move(tried);
      return true;
    };
    const auto takes = [&](const MicroBatchGroups& groups, std::int64_t fastest) {
      if (is_left(fastest / 100 * percent_in_rooms)) return true;
      const Order now = order(groups);
      if (is_too_large(now, plan_.outline, config_, beside)) return false;
      StepOnPaper step(plan_.outline, now, plan_.network);
      if (is_left(step.in_rooms().step)) {
        too_long.push_back(groups);
        return limit_ == 0;
      }
      for (const MicroBatchGroups& before : std::exchange(too_long, {})) {
        StepOnPaper longer(plan_.outline, order(before), plan_.network);
        if (fits_so(longer)) return true;
      }
      plan_.left_at = 0;
      return fits_so(step);
    };
    const OrderMayFit may_fit = [&](const Order& order) {
      return std::ranges::max(least_memory(plan_.outline, order, config_.train.recompute)) <= limit_;
    };
    const MicroBatchGroups groups =
        choose_groups(plan_.outline, plan_.network, plan_.groups, takes, limit_ == 0 ? nullptr : may_fit);
    if (plan_.left_at > 0) return;
    plan_.groups = groups;
    if (!fitting) fitting = with(plan_step(plan_.outline, order(groups), plan_.network));
    take(std::move(*fitting));
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
    const bool may_lack = schedule != ScheduleKind::searched && plan_.outline.tapes_percent == 0,
               is_tight = std::ranges::max(least_beside_tapes(plan_.outline, config_.train.recompute)) +
                              most_tapes(plan_.outline, schedule) >
                          limit_;
    std::optional<RunPlan> fewest;
    if (may_lack && is_tight) fewest = with_fewest_tapes();
    if (fewest && nothing_fits(*fewest, config_)) return *std::move(fewest);
    RunPlan best = first();
    const bool fitted = fits(best, limit_);
    if (may_lack && !is_tight && !fitted) fewest = with_fewest_tapes();
    if (fewest && nothing_fits(*fewest, config_)) return *std::move(fewest);
    const Bytes left = left_for_tapes(best);
    const bool may_fill = schedule == ScheduleKind::searched && plan_.outline.tapes_percent == 0 &&
                          std::ranges::max(left) > own_tapes(plan_.outline, schedule);
    const bool may_improve = fitted ? may_fill : std::ranges::min(left) > 0;
    for (const int percent : percents) {
      if (!may_improve || (percent < fewest_to_choose && (fits(best, limit_) || plan_.left_at > 0))) break;
      allow(left, percent);
      const bool is_nearer = improve_by_order(best);
      if (fitted || (percent < fewest_to_choose && !is_nearer) || is_far_too_long()) break;
      if (schedule == ScheduleKind::searched && is_hopeless(best)) break;
    }
    if (fewest && fits(*fewest, limit_) && !fits(best, limit_)) return *std::move(fewest);
    return best;
  }

  RunPlan with_fewest_tapes() const {
    return with(plan_step(plan_.outline, with_whole_backwards(plan_.outline, config_), plan_.network));
  }

  /// The plan whose order is searched, checked.
  RunPlan searched() const { return with(step(plan_.outline, ScheduleKind::searched)); }

  Order order(const MicroBatchGroups& groups = {}) const {
    require_few_actions(plan_.outline, config_.schedule.kind);
    return order_of_step(plan_.outline, config_.schedule.kind, plan_.network, groups);
  }

  /// The first plan with some cuts, which nobody has checked yet where its order is not searched.
  RunPlan first() {
    if (config_.schedule.kind == ScheduleKind::searched) return searched();
    tried_ = {order()};
    return with(plan_step(plan_.outline, tried_.back(), plan_.network));
  }

  /// Takes the plan of the order that there is now if it is better; whether it was. It is not where the order
  /// was tried before, or its step is left.
  bool improve_by_order(RunPlan& best) {
    return improve(best, [&]() -> std::optional<RunPlan> {
      if (config_.schedule.kind == ScheduleKind::searched) return searched();
      const Order now = order();
      if (std::find(tried_.begin(), tried_.end(), now) != tried_.end()) return std::nullopt;
      tried_.push_back(now);
      if (is_left(StepBound(plan_.outline, plan_.network, true).of(now), best)) return std::nullopt;
      StepOnPaper step(plan_.outline, now, plan_.network);
      if (is_left(step.in_rooms().step, best)) return std::nullopt;
      return with(step.write());
    });
  }

  /// Whether fewer tapes than those of the steps that were left are of no use, either.
  bool is_far_too_long() const {
    return plan_.left_at > 0 && is_too_long_(plan_.left_at / 100 * percent_with_fewer_tapes);
  }

  /// Whether a searched order is so long that one with fewer tapes is of no use, either.
  bool is_hopeless(const RunPlan& best) const {
    constexpr int percent_by_chance = 90;
    return is_too_long_ && is_too_long_(length_of(best) / 100 * percent_by_chance);
  }

  /// Whether a step that takes so long at least is left: it is no shorter than one that fits, or of no use.
  bool is_left(std::int64_t at_least, const RunPlan& best) {
    return (fits(best, limit_) && at_least >= length_of(best)) || is_left(at_least);
  }
  /// Whether it is of no use.
  bool is_left(std::int64_t at_least) {
    if (!is_too_long_ || !is_too_long_(at_least)) return false;
    plan_.left_at = plan_.left_at == 0 ? at_least : std::min(plan_.left_at, at_least);
    return true;
  }

  /// Cuts of a V know how large tapes are, and nothing of what lies beside them: where no step fits, balanced
  /// ones are tried, too.
  void choose_tapes() {
    const Outline known = plan_.outline;
    RunPlan best = tapes_within();
    if (!fits(best, limit_) && plan_.left_at == 0 && cuts_know_tapes(config_)) {
      Outline rough = known;
      lay_out_roughly(rough, config_);
      plan_.outline = known;
      plan_.outline.first_block = rough.first_block;
      improve(best, [&] { return tapes_within(); });
    }
    if (!fits(best, limit_) && plan_.left_at > 0) return;
    take(std::move(best));
  }

  /// Takes a plan whose memory is counted, and proves its lists, unless an order was searched for them.
  void take(RunPlan&& tried) {
    const MicroBatchGroups groups = std::move(plan_.groups);
    plan_ = std::move(tried);
    plan_.groups = groups;
    plan_.left_at = 0;
    if (config_.schedule.kind != ScheduleKind::searched) prove(plan_.training, plan_.outline);
  }

  /// Takes a plan that is better, if one is made: fewer tapes may break schedule.memory, which the first plan
  /// keeps. Whether it was.
  template <class Make>
  bool improve(RunPlan& best, const Make& make) const {
    std::optional<RunPlan> other;
    if (refusal_of([&] { other = make(); }) || !other || !is_better(*other, best, limit_)) return false;
    best = std::move(*other);
    return true;
  }

  RunPlan& plan_;
  const Config& config_;
  const KnownOrder& known_;
  const std::function<void(RunPlan&)>& count_;
  const IsTooLong& is_too_long_;
  std::int64_t limit_;
  std::vector<Order> tried_;  ///< orders that were planned with the cuts that there are now
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
                      const std::function<void(RunPlan&)>& count, const IsTooLong& is_too_long) {
  StepWithin(plan, config, known, count, is_too_long).choose();
}

}  // namespace mindpipe
