#include "app/plan/plan_goal.h"

#include <charconv>

#include "app/run/run_directory.h"
#include "config/config.h"
#include "core/check.h"
#include "energy/carbon.h"
#include "energy/powers.h"
#include "optim/noise_scale.h"
#include "plan/network_on_paper.h"
#include "plan/run_plan.h"

namespace mindpipe {
namespace {

/// The noise scale that was named: a number, or what a run has measured last.
std::optional<double> noise_scale_named(const std::string& text) {
  if (text.empty()) return std::nullopt;
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec == std::errc{} && end.ptr == text.data() + text.size()) {
    MP_REQUIRE(number > 0, Exit::bad_configuration, "plan.noise_scale: {} is no number of samples", text);
    return number;
  }
  std::optional<double> last;
  const bool is_there = read_metrics(text, [&](const JsonMembers& line) {
    const auto found = line.numbers.find("noise_scale");
    if (found != line.numbers.end()) last = found->second;
  });
  MP_REQUIRE(is_there, Exit::input_missing,
             "plan.noise_scale: {} is no number of samples, and {}/metrics.jsonl cannot be read", text, text);
  MP_REQUIRE(last.has_value(), Exit::bad_data,
             "plan.noise_scale: {}/metrics.jsonl has no noise_scale (train with train.noise_every, and with "
             "reproducible.data of 2 or more)",
             text);
  return last;
}

}  // namespace

PlanGoal::PlanGoal(const Config& config)
    : asked_(config.plan),
      energy_(config.energy),
      device_(device_on_paper(config)),
      noise_scale_(
          noise_scale_named(config.plan.noise_scale == "auto" ? config.run.dir : config.plan.noise_scale)) {
  const PlanConfig& asked = config.plan;
  MP_REQUIRE(asked.objective != PlanGoalKind::carbon || energy_.carbon_intensity > 0, Exit::bad_configuration,
             "plan.objective is carbon, and energy.carbon_intensity is 0 (set it to the grams of CO2 "
             "equivalent a kWh "
             "of your power, and energy.source to who says so)");
  MP_REQUIRE(asked.co2_kg == 0 || energy_.carbon_intensity > 0, Exit::bad_configuration,
             "plan.co2_kg is {}, and energy.carbon_intensity is 0, so no CO2 is known (set it)",
             asked.co2_kg);
  MP_REQUIRE(asked.objective != PlanGoalKind::cost || has_prices(), Exit::bad_configuration,
             "plan.objective is cost, and nothing has a price (set plan.rank_hour, plan.kwh or plan.co2_kg)");
  MP_REQUIRE(
      asked.batches.empty() || noise_scale_.has_value(), Exit::bad_configuration,
      "plan.batches: a sample of a large batch is worth less than one of a small batch, and nobody said how "
      "much (set plan.noise_scale, a number or a run with train.noise_every; --noise-scale)");
}

double PlanGoal::facility_kwh(double joules) const {
  return facility_energy(kilowatt_hours(joules), energy_.pue);
}

StepPrice PlanGoal::in_joules(const PlanSize& size) const {
  const Powers rank = estimated_powers(device_, size.threads);
  return {size.ranks * rank.waiting_rank(), rank.busy_rank() - rank.waiting_rank()};
}

StepPrice PlanGoal::in_money(const PlanSize& size) const {
  const StepPrice joules = in_joules(size);
  const double of_joule = facility_kwh(1) * asked_.kwh + kilograms(1).value_or(0) * asked_.co2_kg;
  return {size.ranks * asked_.rank_hour / 3600 + joules.second * of_joule, joules.work * of_joule};
}

StepPrice PlanGoal::price(const PlanSize& size) const {
  switch (asked_.objective) {
    case PlanGoalKind::time:
      return {};
    case PlanGoalKind::energy:
    case PlanGoalKind::carbon:  // as many grams a joule whatever the layout
      return in_joules(size);
    case PlanGoalKind::cost:
      return in_money(size);
  }
  return {};
}

double PlanGoal::worth(int batch, double times) const {
  return noise_scale_ ? NoiseScale::worth(batch, times * *noise_scale_) : batch;
}

double PlanGoal::of_sample(const LayoutCandidate& step, const PlanSize& size, double times) const {
  return 1e-9 * step.cost(price(size)) / worth(size.batch, times);
}

double PlanGoal::joules(const LayoutCandidate& step, const PlanSize& size) const {
  return 1e-9 * step.cost(in_joules(size));
}

std::optional<double> PlanGoal::kilograms(double joules) const {
  if (energy_.carbon_intensity == 0) return std::nullopt;
  return kilograms_co2(facility_kwh(joules), energy_.carbon_intensity);
}

std::optional<double> PlanGoal::money(const LayoutCandidate& step, const PlanSize& size) const {
  if (!has_prices()) return std::nullopt;
  return 1e-9 * step.cost(in_money(size));
}

}  // namespace mindpipe
