#pragma once
#include <optional>
#include <vector>

#include "core/traffic_class.h"
#include "program/clock/port_waits.h"
#include "program/clock/ports.h"
#include "trace/replay_times.h"

namespace mindpipe {

/// What each transfer waited at ports, [step][action] in nanoseconds.
struct PortWaits {
  using Times = std::vector<std::vector<std::int64_t>>;
  Times all, for_own;        ///< for whom it may be, for its own class
  Times takes = {};          ///< time of ports, without these waits
  TimesByPair by_pair = {};  ///< waits of all, by who waited for whom
};

/// The transfers of a trace as they go to the ports of its ranks: of messages, by their receives, and of sums
/// and gathers over data, by each of their members.
class PortTransfers {
 public:
  /// `usual`: what a transfer takes that meets nobody, by action; 0: not known, and none is there. `latency`:
  /// the share of it in which it holds no port. A port is free a little before the end of what left it is
  /// seen, so who waits there goes before what its rank posts then.
  PortTransfers(const StepTrace& trace, const ReplayGraph& graph, const std::vector<std::int64_t>& usual,
                double latency)
      : trace_(trace), graph_(graph), nodes_(trace.nodes()), usual_(usual), latency_(latency) {}

  const ReplayGraph& graph() const { return graph_; }
  std::int64_t usual(int action) const { return usual_[action]; }
  /// None: an action is no such transfer. It takes ports as long as usual.
  std::optional<Ports::Transfer> of(int action) const;
  /// In how many turns it goes to the port, between which others pass.
  int turns(int action, const Ports::Transfer& transfer) const;
  /// How long transfers waited at ports for others, by the rule of ports: each was offered when all of its
  /// ends had come. `one`: none but those of a class are there.
  PortWaits waits(const ReplayTimes& measured, std::optional<TrafficClass> one = {}) const;

 private:
  const StepTrace& trace_;
  const ReplayGraph& graph_;
  std::vector<std::string> nodes_;
  const std::vector<std::int64_t>& usual_;
  double latency_;
};

}  // namespace mindpipe
