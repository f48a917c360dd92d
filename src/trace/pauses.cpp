#include "trace/pauses.h"

#include <algorithm>
#include <limits>

#include "core/middle.h"

namespace mindpipe {
namespace {

/// A pause is longer than what is usual between steps by this factor, and by a millisecond.
constexpr std::int64_t longer_times = 4, longer_by = 1'000'000;

/// What lies between each step and the one before it on the rank that has the least there.
std::vector<std::int64_t> least_between(const StepTrace& trace) {
  std::vector<std::int64_t> least(trace.steps.size(), std::numeric_limits<std::int64_t>::max());
  for (const RankTimes& rank : trace.ranks)
    for (std::size_t step = 0; step < least.size(); ++step)
      least[step] = std::min(least[step], step < rank.host.size() ? rank.host[step].outside : 0);
  return least;
}

/// Brings the times of a step, and of those behind it, forward.
void bring_forward(StepTrace& trace, std::size_t step, std::int64_t by) {
  for (RankTimes& rank : trace.ranks) {
    for (std::size_t later = step; later < rank.steps.size(); ++later)
      for (Recorder::Times& times : rank.steps[later]) {
        times.start -= by;
        times.end -= by;
      }
    for (std::size_t later = step; later < rank.sums.size(); ++later)
      for (TracedSum& sum : rank.sums[later]) {
        sum.start -= by;
        sum.end -= by;
      }
    if (step < rank.host.size()) rank.host[step].outside -= by;
  }
}

}  // namespace

void leave_out_pauses(StepTrace& trace) {
  if (trace.of_subnets || trace.steps.size() < 2) return;
  const std::vector<std::int64_t> between = least_between(trace);
  std::vector<double> known(between.begin() + 1, between.end());
  const auto usual = static_cast<std::int64_t>(lower_middle(std::move(known)));
  for (std::size_t step = 1; step < between.size(); ++step) {
    const std::int64_t more = between[step] - usual;
    if (more <= longer_by || between[step] <= longer_times * usual) continue;
    bring_forward(trace, step, more);
    ++trace.pauses;
    trace.paused += more;
  }
}

}  // namespace mindpipe
