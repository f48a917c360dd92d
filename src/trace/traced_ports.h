#pragma once
#include <vector>

#include "program/clock/pair_costs.h"
#include "trace/contention.h"
#include "trace/replay.h"

namespace mindpipe {

/// The transfers of a trace at the ports of its ranks: each takes what equal ones take that meet nobody, and
/// what it took beyond that it waited for those that held its ports meanwhile, where ContentionFit is sure of
/// that. Says what pairs of classes cost by the function that plans ask, with the steps of the trace, run
/// once more at ports (replay_at_ports), in place of the simulator's.
class TracedPorts {
 public:
  TracedPorts(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured);

  /// The pairs in which waits are sure, beyond noise.
  const std::vector<Contention>& found() const { return fit_.found(); }
  /// The times of the trace, had transfers of the sure pairs not waited for each other.
  ReplayTimes without_waits() const;
  /// The times of the trace with transfers as long as their links alone make them: none waited at ports.
  ReplayTimes of_links() const;
  /// What the sure pairs cost a step; none: nothing is timed.
  PortCosts costs(Counted counted) const;

 private:
  class Passed;

  void find_transfers();
  void part_waits();
  std::int64_t end_of(std::size_t step, int action) const {
    return trace_.ranks[graph_.rank_of(action)].steps[step][graph_.index_of(action)].end;
  }
  ReplayTimes without(const std::vector<Unseen>& pairs) const;
  void remove(const Unseen& pair, ReplayTimes& times) const;
  std::int64_t longest_wait(std::size_t step, int meeting, const Unseen& pair) const;
  std::int64_t usual_of(int meeting) const;
  void shorten(std::size_t step, int meeting, std::int64_t by, ReplayTimes& times) const;

  const StepTrace& trace_;
  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  ContentionFit fit_;
  std::vector<Ports::Left> transfers_;
};

}  // namespace mindpipe
