#include "plan/step_within.h"

#include <algorithm>
#include <optional>

#include "plan/group_choice.h"
#include "plan/memory_limits.h"
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
    if (row_of(schedule).splits_backward && limit_ > 0) return choose_tapes_within();
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
    const auto fits_with = [&](const MicroBatchGroups& groups) {
      const Order order = order_of_step(plan_.outline, schedule, plan_.network, groups);
      if (std::ranges::max(least_memory(plan_.outline, order, config_.train.recompute)) > limit_)
        return false;
      RunPlan tried = with(make_program(plan_.outline, schedule, plan_.network, groups));
      if (!fits(tried, limit_)) return false;
      fitting = std::move(tried);
      return true;
    };
    plan_.groups = limit_ == 0 ? choose_groups(plan_.outline, plan_.network, plan_.groups)
                               : choose_groups(plan_.outline, plan_.network, plan_.groups, fits_with);
    plan_.training = fitting ? std::move(fitting->training) : step(plan_.outline, schedule);
  }

  using Bytes = std::vector<std::int64_t>;

  /// What each stage can give to tapes as an outline counts them, beside all else that it holds.
  Bytes room_for_tapes(const RunPlan& plan) const {
    Bytes room;
    for (int stage = 0; stage < plan.outline.stages; ++stage) {
      const RankMemory& counted = plan.training.placement.ranks[stage];
      room.push_back(limit_ - total_of(plan.most_memory(stage)) +
                     counted.bytes[static_cast<int>(MemoryClass::activations)]);
    }
    return room;
  }

  /// Says to the schedule which tapes each stage may have.
  void allow(const Bytes& room) {
    Outline& outline = plan_.outline;
    outline.tapes_room = std::ranges::max(room);
    const std::int64_t most = most_tapes(outline, config_.schedule.kind);
    outline.fewer_tapes.clear();
    for (const std::int64_t bytes : room)
      outline.fewer_tapes.push_back(std::max<std::int64_t>(0, most - bytes));
  }

  /// The schedule's own tapes, where they fit; else those that each stage has room for. What lies beside
  /// tapes depends on the order, so a step that does not fit is planned again. An order that is searched may
  /// be shorter with more than its own.
  void choose_tapes_within() {
    constexpr int most_tries = 3;
    const ScheduleKind schedule = config_.schedule.kind;
    const bool may_fill = schedule == ScheduleKind::searched && plan_.outline.tapes_percent == 0;
    RunPlan found = with(step(plan_.outline, schedule));
    Bytes room = room_for_tapes(found);
    if (fits(found, limit_)) {
      if (may_fill && std::ranges::max(room) > own_tapes(plan_.outline, schedule)) {
        const Outline own = plan_.outline;
        allow(room);
        RunPlan filled = with(step(plan_.outline, schedule));
        if (fits(filled, limit_) && length_of(filled) < length_of(found)) found = std::move(filled);
        else plan_.outline = own;
      }
    } else {
      for (int tries = 0; tries < most_tries && !fits(found, limit_) && std::ranges::min(room) > 0; ++tries) {
        allow(room);
        found = with(step(plan_.outline, schedule));
        std::ranges::transform(room, room_for_tapes(found), room.begin(),
                               [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
      }
    }
    plan_.training = std::move(found.training);
  }

  static std::int64_t length_of(const RunPlan& plan) { return plan.training.expected.step; }

  RunPlan& plan_;
  const Config& config_;
  const KnownOrder& known_;
  const std::function<void(RunPlan&)>& count_;
  std::int64_t limit_;
};

}  // namespace

void plan_step_within(RunPlan& plan, const Config& config, const KnownOrder& known,
                      const std::function<void(RunPlan&)>& count) {
  StepWithin(plan, config, known, count).choose();
}

}  // namespace mindpipe
