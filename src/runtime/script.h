#pragma once
#include <optional>
#include <vector>

#include "program/check/checked_stretch.h"
#include "program/make_program.h"
#include "runtime/cursors.h"
#include "runtime/device_order.h"
#include "runtime/device_times.h"
#include "runtime/pacer.h"
#include "trace/recorder.h"
#include "trace/summary.h"

namespace mindpipe {

class Feed;

/// How a script is made.
struct ScriptForm {
  /// One stretch that is run again and again, as a step's: nothing behind it waits for one of its entries.
  /// An open list goes on, stretch behind stretch.
  bool closed = false;
  std::size_t recorded = 8;  ///< runs of a closed list whose times are held
  /// How many actions at most are put into the device's queues before the host looks how far the device has
  /// come.
  std::size_t at_once = 1024;
  /// Whether the device's queues carry messages and sums too, so that the host puts the list into them and
  /// waits for nothing.
  bool queued = false;
};

/// One rank's list of a program, with all that belongs to its runs: how far its queues have come, when its
/// actions ran. A rank holds several scripts over one state and alternates between them.
///
/// A script grows by stretches, and holds what has not ended: the rest, up to the oldest action that is open,
/// goes at each extension.
struct Script {
  /// `feed`: brings what the list reads and hears what it finds.
  Script(const Outline& outline, Feed* feed, Backend& backend, const ScriptForm& form);
  /// Appends a stretch, of a closed list the only one, and drops what has ended for good.
  void extend(CheckedStretch checked);
  /// Begins a closed list anew.
  void again(std::int64_t step);

  std::vector<Action> list;
  bool closed;
  std::int64_t dropped = 0;  ///< how many actions there were before the list's first
  Outline outline;           ///< outline that the list was written for
  Feed* feed;
  Cursors cursors;
  DeviceOrder order;
  Pacer pacer;
  Recorder recorder;
  std::optional<DeviceTimes> device_times;  ///< where the device's queues carry everything
  std::size_t put_in = 0;                   ///< there: how many actions they were given
  int computes = -1;       ///< the action that the compute queue runs, where the host waits for it
  bool is_drained = true;  ///< whether all of the device's queues wait for what comes next
  TimeSpent spent;         ///< nanoseconds since the beginning, waits by what was waited for
  SubnetWaits waits;       ///< waits between actions, by the planner's reasons

  bool trains() const { return outline.training; }
};

}  // namespace mindpipe
