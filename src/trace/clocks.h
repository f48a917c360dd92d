#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trace/step_trace.h"

namespace mindpipe {

/// How far another clock is ahead of the first host's, at a time of that one.
struct HostClock {
  std::int64_t zero = 0;  ///< a time of the first host
  double ahead = 0;       ///< nanoseconds at that time
  double rate = 0;        ///< nanoseconds more for each of the first host's
  double bound = 0;       ///< nanoseconds that it may be off by, anywhere in the trace
  bool is_known = false;

  double ahead_at(double time) const { return ahead + rate * (time - static_cast<double>(zero)); }
  /// The first host's time when this clock shows `time`.
  std::int64_t as_first(std::int64_t time) const;
};

/// When something left one host by its clock, and was seen by another host by that one's.
struct ClockPoint {
  std::int64_t left = 0, seen = 0;
};

/// The clock of another host, by what went there and what came back: a line between both sets of points with
/// the largest margin. Unknown where nothing went, or nothing came.
HostClock clock_between(const std::vector<ClockPoint>& went, const std::vector<ClockPoint>& came);

/// Brings the times of all hosts onto the first rank's clock, by messages and pings, host after host along
/// the smallest bounds; sets the trace's bound. Hosts that nothing leads to keep their own clock.
/// Gives back the clocks of the hosts in the order in which ranks name them.
std::vector<HostClock> align_clocks(StepTrace& trace);

}  // namespace mindpipe
