#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mindpipe {

/// Grams of CO2 equivalent a kWh, hour by hour from a moment on.
struct Forecast {
  std::int64_t begin = 0;  ///< seconds since 1970, UTC
  std::vector<double> hours;
  std::int64_t end() const { return begin + 3600 * static_cast<std::int64_t>(hours.size()); }
  /// Mean intensity from one moment to another, which it reaches.
  double mean(double from, double to) const;
};

/// Reads lines of "2026-11-26T14:00Z,412", an hour each, in order; '#' begins a remark.
Forecast read_forecast(const std::string& path);

/// From one time to another, in seconds since 1970.
struct TimeSpan {
  double from = 0, to = 0;
};

/// When a run would emit least.
struct StartAdvice {
  double start = 0;             ///< seconds since 1970
  double intensity = 0;         ///< mean of the run, started then
  double now = 0;               ///< mean of a run that starts as early as it may
  std::vector<TimeSpan> parts;  ///< when a run works that pauses where that is better
  double with_pauses = 0;       ///< mean of such a run
};

/// The best start of a run of so many seconds that begins at `earliest` or later and ends by `deadline`, the
/// earliest of equal ones; refuses a forecast that has ended or does not reach the deadline, and a run that
/// does not fit.
StartAdvice best_start(const Forecast& forecast, double seconds, double earliest, double deadline);

}  // namespace mindpipe
