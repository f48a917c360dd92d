#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trace/replay_times.h"

namespace mindpipe {

/// Which steps a period is the mean of: those behind the first, before which nobody knows what happened, or
/// all, where every rank begins at once.
enum class Counted : std::uint8_t { behind_the_first, all };

/// Steps of all ranks in virtual time.
struct Replayed {
  bool finished = false;                          ///< false: some actions never began
  std::vector<std::vector<std::int64_t>> starts;  ///< [step][action], from 0 on
  std::vector<std::vector<std::int64_t>> ends;    ///< [step][action]

  std::int64_t end_of_step(std::size_t step) const;
  /// Nanoseconds of a step.
  std::int64_t period(Counted counted = Counted::behind_the_first) const;
};

/// Steps of which a period is expected that one row stands for: the first begins where nothing came before.
inline constexpr int chained_steps = 4;

/// Runs steps of all ranks on one clock, each rank going on where its step before ended. A communication ends
/// on each member when the last of its members has begun, and the transfer is over.
Replayed replay(const ReplayGraph& graph, const ReplayTimes& times, int steps);
/// The period of such steps by itself: nothing else is kept of them.
std::int64_t replayed_period(const ReplayGraph& graph, const ReplayTimes& times, int steps,
                             Counted counted = Counted::behind_the_first);

/// How a replay of measured times compares with what was measured.
struct ReplayMatch {
  std::int64_t measured = 0, replayed = 0;  ///< periods in nanoseconds
  std::int64_t off = 0;                     ///< the largest difference of a begin
  std::string first_off;                    ///< sentence about the earliest begin that is off; empty: none is
  double error() const {
    return measured == 0 ? 0 : static_cast<double>(replayed - measured) / static_cast<double>(measured);
  }
};
/// `bound`: what a begin may be off by.
ReplayMatch compare(const StepTrace& trace, const ReplayGraph& graph, const Replayed& replayed,
                    std::int64_t bound = 0);

}  // namespace mindpipe
