#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "program/action.h"
#include "trace/pass_times.h"
#include "trace/recorder.h"

namespace mindpipe {

/// A unit, and how many updates it had when it was read or was about to be updated: of a candidate as many as
/// older subnets use it, of what all subnets share the windows that had been applied.
struct UnitVersion {
  int unit = 0;
  std::int64_t version = 0;
};

/// What a list has done, as it is shown in a trace. Of a list that grows the action's `after` say how many
/// places before it they stand.
struct KeptAction {
  Action action;
  Recorder::Times times;
  std::int64_t bytes = 0;                ///< bytes that were moved
  std::int64_t step = 0;                 ///< which run of a closed list, counted from 1
  int number = 0;                        ///< the action's place in a closed list
  std::int64_t place = 0;                ///< where it stands in all of a list that grows
  std::vector<UnitVersion> units = {};   ///< pass or update: units of the subnet here
  std::vector<UnitVersion> shared = {};  ///< pass: units that all subnets share
};

/// A sum between the ranks that share a product, of a step (0: of none), or in the pass of a subnet.
struct KeptSum {
  Recorder::Sum sum;
  std::int64_t step = 0;
  Owner owner = {};
};

/// What a list that grows, and forgets what has ended, leaves of its recorder: the actions of the last
/// subnets, in the list's order, and how long the passes of more of them took. Passes and updates say which
/// versions they saw as they run; what they say waits here for their times.
class KeptActions {
 public:
  /// `subnets`: of how many at most the actions are kept; `window`: subnets that read one version of what all
  /// share; `lanes`: how many ids lie between two subnets of one lane.
  KeptActions(std::int64_t subnets, std::int64_t window, int lanes)
      : subnets_(subnets), window_(window), pass_times_(lanes) {}

  bool keeps() const { return subnets_ > 0; }
  /// Hears what the list's next pass or update sees, as it starts.
  void see(std::vector<UnitVersion> units, std::vector<UnitVersion> shared);
  /// Hears that all actions of the list below number `ended` have ended, and takes the sums of its recorder.
  /// `place`: how many actions the list had before its first one; `known`: how many subnets there are by now,
  /// of which the last are kept.
  void hear(const std::vector<Action>& list, std::int64_t place, std::size_t ended, Recorder& recorder,
            std::int64_t known);

  const std::vector<KeptAction>& actions() const { return actions_; }
  const std::vector<KeptSum>& sums() const { return sums_; }
  const PassTimes& pass_times() const { return pass_times_; }

 private:
  struct Seen {
    std::vector<UnitVersion> units, shared;
  };
  void keep(const Action& action, const Recorder::Times& times, int index);
  bool is_old(const Owner& owner, std::int64_t known) const;

  std::int64_t subnets_, window_;
  std::int64_t heard_ = 0;  ///< actions that have ended
  std::deque<Seen> seen_;   ///< by passes and updates whose times are not known yet
  std::vector<KeptAction> actions_;
  std::vector<KeptSum> sums_;
  PassTimes pass_times_;
};

}  // namespace mindpipe
