#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "program/action.h"
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

/// A sum between the ranks that share a product, of a step (0: of none).
struct KeptSum {
  Recorder::Sum sum;
  std::int64_t step = 0;
};

/// The actions of the last subnets of a stream, in the order of a list that grows and forgets what has ended.
/// Passes and updates say which versions they saw as they run; what they say waits here for their times.
class KeptActions {
 public:
  KeptActions() = default;
  /// `window`: subnets that read one version of what all share.
  KeptActions(std::int64_t subnets, std::int64_t window) : subnets_(subnets), window_(window) {}

  bool keeps() const { return subnets_ > 0; }
  /// Hears what the list's next pass or update sees, as it starts.
  void see(std::vector<UnitVersion> units, std::vector<UnitVersion> shared);
  /// Hears of the list's next action, which has ended: number `index` in the list, `place` in all of it.
  void add(const Action& action, const Recorder::Times& times, int index, std::int64_t place);
  /// Hears of the last tensor sums.
  void add_sums(const std::vector<Recorder::Sum>& sums);
  /// Forgets most of what is older than the last subnets of `known`.
  void forget(std::int64_t known);

  /// The actions of the last subnets of `known`.
  std::vector<KeptAction> last(std::int64_t known) const;
  const std::deque<KeptSum>& sums() const { return sums_; }

 private:
  struct Seen {
    std::vector<UnitVersion> units, shared;
  };
  bool is_old(const KeptAction& kept, std::int64_t known) const;

  std::int64_t subnets_ = 0, window_ = 1;
  std::deque<Seen> seen_;  ///< by passes and updates whose times are not known yet
  std::deque<KeptAction> actions_;
  std::deque<KeptSum> sums_;
};

}  // namespace mindpipe
