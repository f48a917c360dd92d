#pragma once
#include <string>

#include "app/energy/account.h"
#include "config/config.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// What the energy of a start was used for, and that of the whole run.
struct EnergyCounts {
  std::int64_t steps = 0, samples = 0, counted = 0;
  std::string what;               ///< "token": what is counted
  double run_joules = 0;          ///< with earlier starts
  bool run_is_estimated = false;  ///< all or a part of that
};

/// "12.3 kJ"
std::string human_joules(double joules);
/// Four lines: how much, for what, waiting and for whom, kWh and CO2.
std::string energy_text(const Config& config, const EnergyAccount& account, const EnergyCounts& counts);
/// Numbers of the account as one JSON object.
std::string energy_json(const Config& config, const EnergyAccount& account, const EnergyCounts& counts);
/// Note on how much slower stages may run with the step as long as it is, and what that would save; nothing
/// where no stage may.
std::string slack_text(const RunPlan& plan, const EnergyAccount& account,
                       const std::vector<RankEnergy>& ranks, const Coord& shape, const Powers& estimate);
/// When a run of so many seconds should start, by energy.forecast; `now` in seconds since 1970.
std::string start_text(const Config& config, double seconds, double now);

}  // namespace mindpipe
