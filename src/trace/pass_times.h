#pragma once
#include <array>
#include <cstdint>

#include "program/action.h"
#include "trace/recorder.h"

namespace mindpipe {

/// How long a rank's passes and update of one subnet took, in nanoseconds; passes are added up over its
/// micro-batches.
struct SubnetTimes {
  std::int64_t subnet = -1;          ///< -1: none
  std::int64_t first = 0, last = 0;  ///< the blocks that it passed here
  std::int64_t forward = 0, backward = 0, update = 0;
};

/// These times of the last subnets that a rank had to do with.
class PassTimes {
 public:
  static constexpr std::size_t most = 192;  ///< most subnets of the rank's lane
  using Rows = std::array<SubnetTimes, most>;

  /// `lanes`: how many ids lie between two subnets of one lane.
  explicit PassTimes(int lanes = 1) : lanes_(lanes) {}

  /// Hears of an action that has ended.
  void add(const Action& action, const Recorder::Times& times) {
    if (names_unit(action) || is_communication(action)) return;
    SubnetTimes& here = rows_[static_cast<std::size_t>(action.owner.number / lanes_) % most];
    if (here.subnet != action.owner.number) here = {.subnet = action.owner.number};
    const std::int64_t time = times.end - times.start;
    if (action.kind == ActionKind::update) {
      here.update += time;
      return;
    }
    if (action.kind == ActionKind::forward) {
      here.first = action.first;
      here.last = action.last;
    }
    (action.kind == ActionKind::forward ? here.forward : here.backward) += time;
  }
  const Rows& rows() const { return rows_; }

 private:
  std::int64_t lanes_;
  Rows rows_{};
};

}  // namespace mindpipe
