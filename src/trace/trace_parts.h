#pragma once
#include <bitset>
#include <vector>

#include "core/traffic_class.h"
#include "trace/replay_times.h"
#include "trace/traced_ports.h"
#include "trace/work_model.h"

namespace mindpipe {

/// A part of what makes steps as long as they are, that can be taken out of a trace's times by itself.
struct TracePart {
  enum Kind : std::uint8_t {
    host,           ///< lags beside usual ones
    noise,          ///< passes beside what they take otherwise
    micro_batches,  ///< each beside their mean
    ranks,          ///< each beside its peers
    stages,         ///< each beside their mean
    contention,     ///< transfers that wait for each other
    tensor_sums,
    traffic  ///< all transfers of a class
  };
  Kind kind = host;
  TrafficClass of = TrafficClass::pipeline;
};

/// The times of a trace with some of these parts and without the others.
class TraceParts {
 public:
  /// Which parts are there, by their places in `all()`.
  using Kept = std::bitset<16>;

  /// `traffic`: which transfers delay each other; none: nothing is known of that.
  TraceParts(const ReplayGraph& graph, const ReplayTimes& measured, const WorkModel& model,
             const TracedPorts* traffic);

  /// The parts that the trace has, in the order in which they are taken away.
  const std::vector<TracePart>& all() const { return all_; }
  /// The times with these parts alone, until they are asked for again.
  const ReplayTimes& with(const Kept& kept);

 private:
  bool keeps(const Kept& kept, TracePart::Kind kind, TrafficClass of = TrafficClass::pipeline) const;
  bool has(TrafficClass kind) const;
  void compute(const Kept& kept);
  void keep_waits(TrafficClass of, bool with_waits);

  const ReplayGraph& graph_;
  const ReplayTimes& measured_;
  const WorkModel& model_;
  const TracedPorts* traffic_;
  std::vector<std::int64_t> usual_lags_;
  std::vector<TracePart> all_;
  ReplayTimes times_;
  ReplayTimes without_waits_;  ///< the measured ones, as if no transfer waited for another
};

/// Which lags are alike: those of one kind, and those of actions that begin a step.
int lag_class(const ReplayGraph& graph, int action);
/// The median lag of each class over all ranks and steps.
std::vector<std::int64_t> usual_lags(const ReplayGraph& graph, const ReplayTimes& measured);

}  // namespace mindpipe
