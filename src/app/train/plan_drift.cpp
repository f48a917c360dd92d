#include "app/train/plan_drift.h"

#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "core/log.h"
#include "core/middle.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::size_t warm_up = 2, compared = 5;
constexpr double far_off = 0.05;

double seconds_of(double nanoseconds) { return 1e-9 * nanoseconds; }

double planned_seconds(Run& run) {
  return seconds_of(static_cast<double>(run.worker().plan().training.expected.step));
}

std::string percent_more(double measured, double planned) { return signed_percent(measured / planned - 1); }

}  // namespace

StepParts planned_parts(const PlannedStep& step, int rank) {
  StepParts parts;
  for (std::size_t i = 0; i < step.program.ranks[rank].size(); ++i) {
    const Action& action = step.program.ranks[rank][i];
    const Span& span = step.expected.spans[rank][i];
    const auto lasts = static_cast<double>(span.end - span.start);
    if (is_pass(action)) (adds_to_gradients(action) ? parts.backward : parts.forward) += lasts;
    if (action.kind == ActionKind::update) parts.update += lasts;
  }
  parts.rest = static_cast<double>(step.expected.step) - parts.forward - parts.backward - parts.update;
  return parts;
}

StepParts measured_parts(const TimeSpent& spent, int steps, double seconds) {
  const auto each = [&](std::int64_t time) { return static_cast<double>(time) / steps; };
  const double passes = each(spent.forward + spent.backward), sums = each(spent.wait_tensor);
  const auto with_sums = [&](std::int64_t pass) { return passes > 0 ? each(pass) * (1 + sums / passes) : 0; };
  StepParts parts{with_sums(spent.forward), with_sums(spent.backward), each(spent.update), 0};
  parts.rest = 1e9 * seconds - parts.all();
  return parts;
}

std::string drift_text(const StepParts& planned, const StepParts& measured, double planned_seconds,
                       double measured_seconds, const std::string& prices, bool were_measured) {
  struct Part {
    const char* name;
    double planned, measured;
    double off() const { return std::abs(measured - planned); }
  };
  const Part parts[] = {{"forward passes", planned.forward, measured.forward},
                        {"backward passes", planned.backward, measured.backward},
                        {"updates", planned.update, measured.update},
                        {"waits for other ranks, and what is on no list", planned.rest, measured.rest}};
  const Part& worst = *std::max_element(std::begin(parts), std::end(parts),
                                        [](const Part& a, const Part& b) { return a.off() < b.off(); });
  return fmt::format(
      "a step takes {} and was planned as {} ({}); farthest off are {}, {} a step on rank 0 and {} in the "
      "plan, priced by {}: {}",
      human_seconds(measured_seconds), human_seconds(planned_seconds),
      percent_more(measured_seconds, planned_seconds), worst.name, human_seconds(seconds_of(worst.measured)),
      human_seconds(seconds_of(worst.planned)), prices,
      were_measured ? "see that nothing else runs on these machines, or measure them again with "
                      "mindpipe-train profile; another layout may be faster"
                    : "measure this machine with mindpipe-train profile and name its file in device.profile; "
                      "another layout may be faster");
}

bool PlanDrift::is_planned() const {
  const Config& config = run_.config();
  return (run_.was_searched() || !config.device.profile.empty()) && row_of(config.device.kind).computes;
}

void PlanDrift::add(double seconds) {
  if (!run_.is_rank_0() || !is_planned() || seconds_.size() == warm_up + compared) return;
  seconds_.push_back(seconds);
  if (seconds_.size() != warm_up && seconds_.size() != warm_up + compared) return;
  Worker& worker = run_.worker();
  TimeSpent spent = worker.executor().spent(worker.training());
  if (seconds_.size() == warm_up) {
    before_ = spent;
    return;
  }
  for (std::int64_t TimeSpent::*time :
       {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::update, &TimeSpent::wait_tensor})
    spent.*time -= before_.*time;
  const double median = upper_middle({seconds_.begin() + warm_up, seconds_.end()});
  const double planned = planned_seconds(run_);
  if (std::abs(median / planned - 1) <= far_off) return;
  const DeviceConfig& device = run_.config().device;
  const PlannedStep& plan = worker.plan().training;
  warning("{}", drift_text(planned_parts(plan, worker.layout().coord.pipeline),
                           measured_parts(spent, compared, median), planned, median,
                           device.profile.empty() ? "the device " + device_name(run_.config())
                                                  : "the profile " + device.profile,
                           !device.profile.empty()));
}

std::string PlanDrift::text(double median) const {
  if (!is_planned()) return "";
  const double planned = planned_seconds(run_);
  return fmt::format("planned {} a step, measured {} ({})\n", human_seconds(planned), human_seconds(median),
                     percent_more(median, planned));
}

}  // namespace mindpipe
