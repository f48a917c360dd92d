#include "app/energy/energy_text.h"

#include <fmt/format.h>
#include <ctime>

#include <algorithm>
#include <cmath>

#include "app/run/json_line.h"
#include "config/sections/energy.h"
#include "core/text.h"
#include "energy/carbon.h"
#include "energy/forecast.h"

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

const char* estimated_mark(bool estimated) { return estimated ? " (estimated)" : ""; }

/// Where the watts of a rank come from.
std::string origin_of(const FittedPowers& powers, bool estimated) {
  if (powers.fitted) return fmt::format("found by regression over {} windows", powers.windows);
  if (powers.windows == 0 && estimated) return "estimated";
  return fmt::format(
      "in the ratio of the estimate: {}",
      powers.windows < fewest_windows
          ? fmt::format("{} windows of 2 s or more, and regression takes {}", powers.windows, fewest_windows)
          : fmt::format("{} windows are too alike for regression", powers.windows));
}

/// What the energy of the run so far has not in it: "; without 2 starts that did not come to their end".
std::string missing_text(const RunSoFar& run, std::string_view trained) {
  std::string text;
  if (run.unfinished_starts > 0)
    text += fmt::format("; without {} start{} that did not come to {} end", run.unfinished_starts,
                        run.unfinished_starts == 1 ? "" : "s", run.unfinished_starts == 1 ? "its" : "their");
  if (run.missing_steps > 0)
    text += fmt::format("; without {} {}{} of starts that were killed or had energy.meter none",
                        run.missing_steps, trained, run.missing_steps == 1 ? "" : "s");
  return text;
}

/// For whom others waited, in joules an hour.
std::string accusation(const EnergyAccount& account) {
  if (account.waited_for.who.empty()) return "for nobody in particular";
  return fmt::format("{} costs {} an hour in others' waiting", account.waited_for.who,
                     human_joules(account.waited_for.joules / account.seconds * 3600));
}

void add_slack(JsonLine& line, const SlackAdvice& advice) {
  if (advice.stages.empty()) return;
  std::vector<double> slower, least, most;
  for (const StageSaving& stage : advice.stages) {
    slower.push_back(stage.slower);
    least.push_back(stage.least);
    most.push_back(stage.most);
  }
  line.add("slack_is_estimated", true)
      .add("slack_of_stages", slower)
      .add("slack_saves_at_least", least)
      .add("slack_saves_at_most", most);
}

}  // namespace

std::string human_joules(double joules) {
  if (joules >= 1e9) return fmt::format("{:.2f} GJ", joules * 1e-9);
  if (joules >= 1e6) return fmt::format("{:.2f} MJ", joules * 1e-6);
  if (joules >= 1e4) return fmt::format("{:.1f} kJ", joules * 1e-3);
  return joules >= 1 ? fmt::format("{:.1f} J", joules) : fmt::format("{:.3g} J", joules);
}

std::string energy_text(const EnergyConfig& energy, const EnergyAccount& account,
                        const EnergyCounts& counts) {
  const double joules = account.joules;
  const auto each = [&](std::int64_t count) { return human_joules(joules / static_cast<double>(count)); };
  const EnergyPhases& phases = account.phases;
  const char* mark = estimated_mark(account.estimated);
  std::string text = fmt::format(
      "\nenergy{}: {}{}; {} a {}, {} a {}, {} a sample; the run so far{} {}\n", mark, human_joules(joules),
      account.shared ? " (this job's part, since others used its nodes)" : "", each(counts.steps),
      counts.trained, each(counts.counted), counts.what, each(counts.samples),
      estimated_mark(counts.run.is_estimated), human_joules(counts.run.joules));
  text += fmt::format(
      "of it{} forward {}, backward {}, update {},{} waiting {}, outside steps {}; a rank takes {:.3g} W "
      "busy, {:.3g} W else ({})\n",
      mark, share(phases.forward, joules), share(phases.backward, joules),
      share(phases.update + phases.scalars, joules),
      phases.evaluation > 0 ? fmt::format(" evaluations {},", share(phases.evaluation, joules)) : "",
      share(phases.waiting, joules), share(phases.outside, joules), account.powers.busy, account.powers.rest,
      origin_of(account.powers, account.estimated));
  text += fmt::format("waiting{}: {}, {}; {}\n", mark, human_joules(phases.waiting),
                      share(phases.waiting, joules), accusation(account));
  const double kwh = kilowatt_hours(counts.run.joules), facility = facility_energy(kwh, energy.pue);
  return text + fmt::format("the run so far{}: {:.4g} kWh, {:.4g} kWh of the facility: {}; {}{}\n",
                            estimated_mark(counts.run.is_estimated), kwh, facility, pue_text(energy.pue),
                            carbon_text(energy, facility), missing_text(counts.run, counts.trained));
}

std::string energy_json(const EnergyConfig& energy, const EnergyAccount& account, const EnergyCounts& counts,
                        const SlackAdvice& advice) {
  const EnergyPhases& phases = account.phases;
  const auto each = [&](std::int64_t count) { return account.joules / static_cast<double>(count); };
  const double kwh = kilowatt_hours(counts.run.joules), facility = facility_energy(kwh, energy.pue);
  JsonLine line;
  line.add("estimated", account.estimated)
      .add("joules", account.joules)
      .add("seconds", account.seconds)
      .add(fmt::format("{}s", counts.trained), counts.steps)
      .add(fmt::format("joules_per_{}", counts.trained), each(counts.steps))
      .add(fmt::format("joules_per_{}", counts.what), each(counts.counted))
      .add("joules_per_sample", each(counts.samples))
      .add("joules_forward", phases.forward)
      .add("joules_backward", phases.backward)
      .add("joules_update", phases.update)
      .add("joules_scalars", phases.scalars)
      .add("joules_evaluations", phases.evaluation)
      .add("joules_waiting", phases.waiting)
      .add("joules_outside_steps", phases.outside)
      .add("share_waiting", account.joules > 0 ? phases.waiting / account.joules : 0.0)
      .add("waited_for", account.waited_for.who)
      .add("joules_waited_for_it", account.waited_for.joules)
      .add("watts_busy", account.powers.busy)
      .add("watts_else", account.powers.rest)
      .add("watts_by_regression", account.powers.fitted)
      .add("windows", static_cast<std::int64_t>(account.powers.windows))
      .add("node_was_shared", account.shared)
      .add("reader_seconds", account.reader_seconds)
      .add("run_joules", counts.run.joules)
      .add("run_is_estimated", counts.run.is_estimated)
      .add("run_through", counts.run.through)
      .add("run_unfinished_starts", counts.run.unfinished_starts)
      .add("run_missing_steps", counts.run.missing_steps)
      .add("run_kwh", kwh)
      .add("pue", energy.pue)
      .add("facility_kwh", facility);
  if (energy.carbon_intensity > 0)
    line.add("carbon_intensity", energy.carbon_intensity)
        .add("carbon_source", energy.source)
        .add("kg_co2e", kilograms_co2(facility, energy.carbon_intensity));
  add_slack(line, advice);
  line.add("meters", join(account.words, "; "))
      .add("troubles", join(account.troubles, "; "))
      .add("summary", fmt::format("energy{}: {} for {} {}s, {} a {}; the run so far{}: {:.4g} kWh; {}{}",
                                  estimated_mark(account.estimated), human_joules(account.joules),
                                  counts.steps, counts.trained, human_joules(each(counts.counted)),
                                  counts.what, estimated_mark(counts.run.is_estimated), kwh,
                                  carbon_text(energy, facility), missing_text(counts.run, counts.trained)));
  return line.text() + "\n";
}

std::string start_text(const EnergyConfig& energy, double seconds, double now) {
  const Forecast forecast = read_forecast(energy.forecast);
  const double earliest = std::max(now, static_cast<double>(forecast.begin)),
               deadline = energy.deadline > 0 ? now + energy.deadline : static_cast<double>(forecast.end());
  const StartAdvice advice = best_start(forecast, seconds, earliest, deadline);
  std::string text = fmt::format(
      "\na run of {} within {}: started {} {:.0f} g CO2/kWh, {}\n    sbatch --begin={} ...\n",
      human_seconds(seconds), human_seconds(deadline - now),
      earliest > now ? fmt::format("when the forecast begins, {},", local_time(earliest)) : "at once",
      advice.now,
      advice.start > earliest
          ? fmt::format("started {} {:.0f} g/kWh ({:.0f} % less)", local_time(advice.start), advice.intensity,
                        100 * (1 - advice.intensity / advice.now))
          : "and no later start emits less",
      local_time(advice.start));
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
