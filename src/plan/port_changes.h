#pragma once
#include <optional>
#include <string>

#include "config/config.h"
#include "core/traffic_class.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// A change of a configuration, simulated.
struct PortChange {
  std::string words;      ///< "schedule.kind=elastic schedule.chunks=4"
  std::int64_t time = 0;  ///< nanoseconds of a step, or of a subnet
};

/// Finds changes that keep bits and memory.device_limit, for who is held up at ports: another schedule with
/// its groups, more chunks, or the axis of the traffic that holds ports within a node; of a supernet other
/// cuts. Each is simulated once, whatever pair asks for it.
class PortChanges {
 public:
  explicit PortChanges(const Config& config);
  /// Simulates what may help against traffic of this class.
  void simulate_for(TrafficClass holds);
  /// What is simulated, in words.
  const char* alternatives() const;
  /// The shortest of all that were simulated, if it is shorter than `time` by half a percent or more.
  std::optional<PortChange> best(std::int64_t time) const;

 private:
  std::vector<LayoutChoice> layouts_for(TrafficClass holds) const;
  void simulate(const LayoutChoice& layout);
  PortChange other_cuts() const;

  const Config& config_;
  bool of_subnets_;
  Config open_;                                             ///< with groups of the planner's
  std::vector<std::pair<LayoutChoice, PortChange>> known_;  ///< time 0: it is refused, or does not fit
  std::optional<PortChange> other_cuts_;                    ///< supernet: those of own cuts, or of one
};

}  // namespace mindpipe
