#include "trace/host_reasons.h"

#include <algorithm>

#include "core/middle.h"
#include "core/text.h"

namespace mindpipe {
namespace {

// A count explains a cause if it is this share of what that costs; events, if there are so many more a step.
constexpr double explains = 0.25, often = 0.5;
constexpr double many_switches = 10, much_delay = 0.02;

/// What a rank's steps have of a count, in the mean, beyond the median of the other ranks.
class Beyond {
 public:
  Beyond(const StepTrace& trace, int rank) : trace_(trace), rank_(rank) {}
  double of(std::int64_t HostCounts::*count) const {
    std::vector<double> others;
    for (std::size_t rank = 0; rank < trace_.ranks.size(); ++rank)
      if (static_cast<int>(rank) != rank_) others.push_back(mean(rank, count));
    return mean(static_cast<std::size_t>(rank_), count) - lower_middle(std::move(others));
  }

 private:
  double mean(std::size_t rank, std::int64_t HostCounts::*count) const {
    double sum = 0;
    for (const HostCounts& step : trace_.ranks[rank].host) sum += static_cast<double>(step.*count);
    return sum / static_cast<double>(trace_.steps.size());
  }

  const StepTrace& trace_;
  int rank_;
};

bool has_counts(const StepTrace& trace) {
  return std::any_of(trace.ranks.begin(), trace.ranks.end(), [](const RankTimes& rank) {
    return std::any_of(rank.host.begin(), rank.host.end(),
                       [](const HostCounts& step) { return step != HostCounts{}; });
  });
}

}  // namespace

double usual_run_delay(const StepTrace& trace) {
  std::vector<double> delays;
  for (const RankTimes& rank : trace.ranks)
    for (const HostCounts& step : rank.host) delays.push_back(static_cast<double>(step.run_delay));
  return lower_middle(std::move(delays));
}

std::string busy_machine(const StepTrace& trace, std::int64_t period) {
  const double delay = usual_run_delay(trace);
  if (delay < much_delay * static_cast<double>(period)) return "";
  return fmt::format(
      "processors ran other processes for {} of a step ({:.0f} %) on the median rank: these are times of a "
      "machine that others use, or of more ranks than processors",
      human_seconds(delay * 1e-9), 100 * delay / static_cast<double>(period));
}

std::string likely_reason(const StepTrace& trace, const Cause& cause) {
  if (cause.rank < 0 || cause.kind == Cause::slow_link || !has_counts(trace)) return "";
  const Beyond beyond(trace, cause.rank);
  const double enough = explains * static_cast<double>(cause.saves);
  const auto seconds = [](double ns) { return human_seconds(ns * 1e-9); };
  if (const double delay = beyond.of(&HostCounts::run_delay); delay >= enough)
    return fmt::format("its processor ran other processes for {} of a step", seconds(delay));
  if (const double faults = beyond.of(&HostCounts::faults); faults >= often)
    return fmt::format("{:.1f} pages of its memory come from a disk in a step", faults);
  if (const double outside = beyond.of(&HostCounts::outside); cause.kind == Cause::host && outside >= enough)
    return fmt::format("{} pass between its steps, with data, logs or checkpoints", seconds(outside));
  if (const double switches = beyond.of(&HostCounts::switches); switches >= many_switches)
    return fmt::format("it is made to leave its processor {:.0f} times a step", switches);
  if (beyond.of(&HostCounts::migrations) >= often) return "it moves from processor to processor";
  return cause.kind == Cause::host || cause.kind == Cause::jitter
             ? ""
             : "its clock or its hardware, which is a guess, since the system counts nothing else of it";
}

}  // namespace mindpipe
