#pragma once
#include <string>
#include <string_view>

#include "app/energy/account.h"
#include "app/energy/slack_advice.h"

namespace mindpipe {

struct EnergyConfig;

/// The energy of a run's starts, as far as it is known.
struct RunSoFar {
  double joules = 0;
  bool is_estimated = false;           ///< whether all or a part is
  std::int64_t unfinished_starts = 0;  ///< starts that were killed, or failed
  std::int64_t missing_steps = 0;      ///< steps or subnets that no account has
  std::int64_t through = 0;            ///< the last step or subnet that an account has
};

/// What the energy of a start was used for, and that of the whole run.
struct EnergyCounts {
  std::int64_t steps = 0, samples = 0, counted = 0;
  std::string what;                   ///< "token": what is counted
  RunSoFar run;                       ///< with earlier starts
  std::string_view trained = "step";  ///< the word for what is trained: "step", "subnet"
};

/// "12.3 kJ"
std::string human_joules(double joules);
/// Four lines: how much, for what, waiting and for whom, kWh and CO2.
std::string energy_text(const EnergyConfig& energy, const EnergyAccount& account, const EnergyCounts& counts);
/// Numbers of the account, and of the advice where there is some, as one JSON object.
std::string energy_json(const EnergyConfig& energy, const EnergyAccount& account, const EnergyCounts& counts,
                        const SlackAdvice& advice = {});
/// When a run of so many seconds should start, by energy.forecast; `now` in seconds since 1970.
std::string start_text(const EnergyConfig& energy, double seconds, double now);

}  // namespace mindpipe
