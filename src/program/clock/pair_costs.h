#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program/clock/port_waits.h"

namespace mindpipe {

/// Whose gradients are summed: those of data ranks, those of units that several ranks have (a tied table of
/// stages, what lanes share), or both.
enum class Summed : std::uint8_t { over_data, shared_units, both };
/// What ranks send each other in a class, and for which axis.
const char* words_of(TrafficClass traffic, Summed summed = Summed::over_data);

/// What it costs that transfers of one class wait at ports for those of another.
struct PairCost {
  TrafficClass waits = TrafficClass::pipeline, holds = TrafficClass::gradients;
  std::int64_t waited = 0;  ///< nanoseconds of all transfers
  std::int64_t cost = 0;    ///< nanoseconds that it takes less where only the first does not find the second
  Summed summed = Summed::over_data;  ///< where one of them is sums of gradients
};
/// All pairs that meet at ports, the dearest first.
struct PortCosts {
  std::int64_t time = 0;   ///< nanoseconds of a step, or of subnets on paper
  std::int64_t count = 1;  ///< steps or subnets that take this time
  std::vector<PairCost> pairs;
  /// Pairs that cost half a percent of the time or more.
  std::vector<PairCost> dear() const;
};

/// How long something takes where one class does not find another at ports (none: where all are found);
/// `see` is told of each transfer that leaves a port, unless it is empty. A plan asks the simulator, a trace
/// its replay.
using TimeAtPorts = std::function<std::int64_t(const std::optional<Unseen>& unseen,
                                               const std::function<void(const Ports::Left&)>& see)>;
/// Prices all pairs: each that waits is timed once more, as if the one did not find the other at ports.
PortCosts port_costs(const TimeAtPorts& time);

/// A pair in words: "sums of gradients (data) hold up messages of the pipeline: 3.1 ms of a step of 128 ms".
/// `of`: step or subnet.
std::string pair_text(const PairCost& pair, const PortCosts& costs, const char* of);

}  // namespace mindpipe
