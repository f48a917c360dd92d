#pragma once
#include <optional>
#include <vector>

#include "program/lists/list_stretch.h"
#include "program/make_program.h"
#include "runtime/cursors.h"
#include "runtime/device_order.h"
#include "runtime/device_times.h"
#include "runtime/pacer.h"
#include "runtime/step_answers.h"
#include "trace/kept_actions.h"
#include "trace/recorder.h"
#include "trace/summary.h"

namespace mindpipe {

class Feed;

/// Where a script runs: what its parts ask of the device and of the wires.
struct ScriptPlace {
  Backend& backend;
  Waiting& waiting;
  /// Whether the device's queues carry messages and sums too, so that the host puts the list into them and
  /// waits for nothing.
  bool queued = false;
  Memory* pinned = nullptr;  ///< of the host, where it may not read the backend's memory
};

/// One rank's list of a program, with all that belongs to its runs: how far its queues have come, what is
/// known of its steps, when its actions ran. A rank holds several scripts over one state (a training step, an
/// evaluation) and alternates between them.
///
/// A step's list is run again and again. A list that grows is run but once, stretch by stretch, and holds
/// what has not ended: the rest, up to the oldest action that is open, goes at each extension.
struct Script {
  /// A step or an evaluation.
  Script(const PlannedStep& plan, const Outline& outline, int rank, const ScriptPlace& place,
         std::size_t recorded_steps);
  /// A list that grows, and is empty yet. `at_once`: how many actions at most are put into the device's
  /// queues before the host looks how far the device has come; it is never further ahead than two such
  /// pieces, or two stretches where they are shorter.
  Script(const Outline& outline, const ScriptPlace& place, std::size_t recorded_stretches,
         std::size_t at_once);
  /// Appends a stretch, and drops what has ended for good.
  void extend(ListStretch stretch);

  std::vector<Action> list;
  bool grows = false;
  std::int64_t dropped = 0;  ///< how many actions there were before the list's first
  Outline outline;           ///< that the list was written for
  Cursors cursors;
  DeviceOrder order;
  Pacer pacer;
  Feed* feed = nullptr;  ///< of a list that grows: brings what it reads, and hears what it finds
  StepAnswers answers;
  Recorder recorder;
  KeptActions kept;                         ///< of a supernet's list
  std::optional<DeviceTimes> device_times;  ///< where the device's queues carry everything
  std::size_t put_in = 0;                   ///< there, of a list that grows: how many actions they were given
  bool at_cut = true;                       ///< and whether all queues wait for what comes next
  TimeSpent spent;                          ///< nanoseconds since the beginning, waits by what was waited for
  SubnetWaits waits;  ///< of a list that grows: those between actions once more, by the planner's reasons

  bool trains() const { return outline.training; }
};

}  // namespace mindpipe
