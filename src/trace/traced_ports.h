#pragma once
#include <map>
#include <utility>
#include <vector>

#include "program/clock/pair_costs.h"
#include "trace/contention.h"
#include "trace/replay.h"

namespace mindpipe {

/// The transfers of a trace at the ports of its ranks: each takes what equal ones take that meet nobody, and
/// what it took beyond that it waited for those that held its ports meanwhile. Says what pairs of classes
/// cost by the function that plans ask, with the steps of the trace in place of the simulator's.
class TracedPorts {
 public:
  TracedPorts(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured);

  /// The pairs in which waits are sure, beyond noise.
  const std::vector<Contention>& found() const { return fit_.found(); }
  /// Takes what the transfers of a pair waited out of a trace's times.
  void remove(const Unseen& pair, ReplayTimes& times) const;
  /// What the sure pairs cost a step; none: nothing is timed.
  PortCosts costs(Counted counted) const;

 private:
  /// How long a meeting waited, by its place in the list of transfers.
  using Waits = std::map<std::pair<std::size_t, int>, std::int64_t>;  ///< [step, meeting]

  void find_transfers(const StepTrace& trace);
  void find_waits();

  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  ContentionFit fit_;
  std::vector<Ports::Left> transfers_;
  std::vector<std::pair<std::size_t, int>> meeting_of_;  ///< step and meeting of each transfer
  std::map<std::pair<TrafficClass, TrafficClass>, Waits> waits_;
};

}  // namespace mindpipe
