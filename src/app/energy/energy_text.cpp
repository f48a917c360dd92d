#include "app/energy/energy_text.h"

#include <fmt/format.h>
#include <ctime>

#include <algorithm>
#include <cmath>

#include "app/run/json_line.h"
#include "core/text.h"
#include "energy/carbon.h"
#include "energy/forecast.h"
#include "plan/slack.h"

namespace mindpipe {
namespace {

std::string share(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0);
}

std::string pue_text(double pue) {
  return pue == 1 ? "no facility overhead (energy.pue 1.0)" : fmt::format("energy.pue {}", shortest(pue));
}

std::string carbon_text(const EnergyConfig& energy, double facility_kwh) {
  if (energy.carbon_intensity == 0) return "CO2 not known: no energy.carbon_intensity is given";
  return fmt::format("{:.4g} kg CO2e at {} g/kWh ({})", kilograms_co2(facility_kwh, energy.carbon_intensity),
                     shortest(energy.carbon_intensity), energy.source);
}

/// "2026-11-26T14:00:00" on this machine's clock, as sbatch reads it.
std::string local_time(double seconds) {
  const auto whole = static_cast<std::time_t>(std::ceil(seconds));
  std::tm parts{};
  localtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/// Joules that a stage's clocks could save: of what computing takes above an idle device, where a dynamic
/// energy goes with the clock to the power `exponent`.
double saved(double dynamic_joules, double slack, double exponent) {
  return dynamic_joules * (1 - std::pow(1 + slack, -exponent));
}

}  // namespace

std::string human_joules(double joules) {
  if (joules >= 1e9) return fmt::format("{:.2f} GJ", joules * 1e-9);
  if (joules >= 1e6) return fmt::format("{:.2f} MJ", joules * 1e-6);
  if (joules >= 1e4) return fmt::format("{:.1f} kJ", joules * 1e-3);
  return joules >= 1 ? fmt::format("{:.1f} J", joules) : fmt::format("{:.3g} J", joules);
}

std::string energy_text(const Config& config, const EnergyAccount& account, const EnergyCounts& counts) {
  const double joules = account.joules;
  const auto each = [&](std::int64_t count) { return human_joules(joules / static_cast<double>(count)); };
  const EnergyPhases& phases = account.phases;
  std::string text =
      fmt::format("\nenergy{}: {}; {} a {}, {} a {}, {} a sample; the run so far {}\n",
                  account.estimated ? " (estimated)" : "", human_joules(joules), each(counts.steps),
                  row_of(config.model.kind).trains_subnets ? "subnet" : "step", each(counts.counted),
                  counts.what, each(counts.samples), human_joules(counts.run_joules));
  text += fmt::format(
      "of it forward {}, backward {}, update {}, waiting {}, outside steps {}; a rank takes {:.3g} W busy, "
      "{:.3g} W "
      "else ({})\n",
      share(phases.forward, joules), share(phases.backward, joules),
      share(phases.update + phases.scalars, joules), share(phases.waiting, joules),
      share(phases.outside, joules), account.powers.busy, account.powers.rest,
      account.powers.fitted ? "found by regression" : "in the ratio of the estimate");
  text += fmt::format("waiting: {}{}\n", human_joules(phases.waiting),
                      account.waited_for.who.empty()
                          ? ", for nobody in particular"
                          : fmt::format("; {} costs {} an hour in others' waiting", account.waited_for.who,
                                        human_joules(account.waited_for.joules / account.seconds * 3600)));
  const double kwh = kilowatt_hours(counts.run_joules), facility = facility_energy(kwh, config.energy.pue);
  return text + fmt::format("the run so far{}: {:.4g} kWh, {:.4g} kWh of the facility: {}; {}\n",
                            account.estimated ? " (estimated)" : "", kwh, facility,
                            pue_text(config.energy.pue), carbon_text(config.energy, facility));
}

std::string energy_json(const Config& config, const EnergyAccount& account, const EnergyCounts& counts) {
  const EnergyPhases& phases = account.phases;
  const auto each = [&](std::int64_t count) { return account.joules / static_cast<double>(count); };
  const double kwh = kilowatt_hours(counts.run_joules), facility = facility_energy(kwh, config.energy.pue);
  JsonLine line;
  line.add("estimated", account.estimated)
      .add("joules", account.joules)
      .add("seconds", account.seconds)
      .add("steps", counts.steps)
      .add("joules_per_step", each(counts.steps))
      .add(fmt::format("joules_per_{}", counts.what), each(counts.counted))
      .add("joules_per_sample", each(counts.samples))
      .add("joules_forward", phases.forward)
      .add("joules_backward", phases.backward)
      .add("joules_update", phases.update)
      .add("joules_scalars", phases.scalars)
      .add("joules_waiting", phases.waiting)
      .add("joules_outside_steps", phases.outside)
      .add("share_waiting", account.joules > 0 ? phases.waiting / account.joules : 0.0)
      .add("waited_for", account.waited_for.who)
      .add("joules_waited_for_it", account.waited_for.joules)
      .add("watts_busy", account.powers.busy)
      .add("watts_else", account.powers.rest)
      .add("watts_by_regression", account.powers.fitted)
      .add("node_was_shared", account.shared)
      .add("reader_seconds", account.reader_seconds)
      .add("run_joules", static_cast<std::int64_t>(std::llround(counts.run_joules)))
      .add("run_kwh", kwh)
      .add("pue", config.energy.pue)
      .add("facility_kwh", facility);
  if (config.energy.carbon_intensity > 0)
    line.add("carbon_intensity", config.energy.carbon_intensity)
        .add("carbon_source", config.energy.source)
        .add("kg_co2e", kilograms_co2(facility, config.energy.carbon_intensity));
  line.add("meters", join(account.words, "; "))
      .add("summary", fmt::format("energy{}: {} for {} steps, {} a {}; {:.4g} kWh; {}",
                                  account.estimated ? " (estimated)" : "", human_joules(account.joules),
                                  counts.steps, human_joules(each(counts.counted)), counts.what, kwh,
                                  carbon_text(config.energy, facility)));
  return line.text() + "\n";
}

std::string slack_text(const RunPlan& plan, const EnergyAccount& account,
                       const std::vector<RankEnergy>& ranks, const Coord& shape, const Powers& estimate) {
  constexpr double worth_saying = 0.01, most_actions = 3e7, simulations = 13;
  const Program& program = plan.training.program;
  const auto stages = program.ranks.size();
  double actions = 0;
  for (const auto& list : program.ranks) actions += static_cast<double>(list.size());
  if (!plan.trains_steps() || stages < 2 ||
      actions * simulations * static_cast<double>(stages) > most_actions)
    return "";
  const Slack slack =
      slack_of(program, durations_of(program, plan.outline, plan.training.network), plan.training.network);
  // A clock changes what computing takes above an idle device.
  const double dynamic = account.powers.busy * (estimate.compute - estimate.idle) / estimate.busy_rank();
  std::string who;
  double least = 0, most = 0;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const double x = slack.of_ranks[stage];
    if (x < worth_saying) continue;
    who += fmt::format("{}stage {} {:.0f} %", who.empty() ? "" : ", ", stage, 100 * x);
    double busy = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      if (coord_at(shape, static_cast<int>(rank)).pipeline == static_cast<int>(stage))
        busy += static_cast<double>(ranks[rank].spent.work()) * 1e-9;
    least += saved(dynamic * busy, x, 1);
    most += saved(dynamic * busy, x, 2);
  }
  if (who.empty()) return "";
  return fmt::format(
      "note: with the step as long as it is, by the simulator, these may run slower, all together: {}; "
      "clocks lower "
      "by as much save about {:.1f} to {:.1f} % of the energy (estimated; nothing here sets a clock)\n",
      who, 100 * least / account.joules, 100 * most / account.joules);
}

std::string start_text(const Config& config, double seconds, double now) {
  const EnergyConfig& energy = config.energy;
  const Forecast forecast = read_forecast(energy.forecast);
  const double earliest = std::max(now, static_cast<double>(forecast.begin)),
               deadline = energy.deadline > 0 ? now + energy.deadline : static_cast<double>(forecast.end());
  const StartAdvice advice = best_start(forecast, seconds, earliest, deadline);
  std::string text = fmt::format(
      "\na run of {} within {}: started at once {:.0f} g CO2/kWh, started {} {:.0f} g/kWh ({:.0f} % less)\n"
      "    sbatch --begin={} ...\n",
      human_seconds(seconds), human_seconds(deadline - now), advice.now, local_time(advice.start),
      advice.intensity, 100 * (1 - advice.intensity / std::max(advice.now, 1e-9)), local_time(advice.start));
  if (advice.parts.size() > 1 && advice.with_pauses < 0.98 * advice.intensity) {
    text += fmt::format("with pauses {:.0f} g/kWh: ", advice.with_pauses);
    for (std::size_t i = 0; i < advice.parts.size(); ++i)
      text += fmt::format("{}{} to {}", i == 0 ? "" : ", ", local_time(advice.parts[i].from),
                          local_time(advice.parts[i].to));
    text += " (run.max_walltime stops a run with a checkpoint)\n";
  }
  return text + "nothing is started or paused by itself\n";
}

}  // namespace mindpipe
