#pragma once
#include <optional>
#include <vector>

#include "program/make_program.h"
#include "runtime/cursors.h"
#include "runtime/device_order.h"
#include "runtime/device_times.h"
#include "runtime/pacer.h"
#include "runtime/step_answers.h"
#include "trace/recorder.h"
#include "trace/summary.h"

namespace mindpipe {

/// Where a script runs: what its parts ask of the device and of the wires.
struct ScriptPlace {
  Backend& backend;
  Waiting& waiting;
  /// Whether the device's queues carry messages and sums too, so that the host puts the list into them and
  /// waits for nothing.
  bool queued = false;
  Memory* pinned = nullptr;  ///< of the host, where it may not read the backend's memory
};

/// One rank's list of a program, made ready to be run again and again, with all that belongs to its runs: how
/// far its queues have come, what is known of its steps, when its actions ran. A rank holds several scripts
/// over one state (a training step, an evaluation) and alternates between them.
struct Script {
  Script(const PlannedStep& plan, const Outline& outline, int rank, const ScriptPlace& place,
         std::size_t recorded_steps);

  std::vector<Action> list;
  Outline outline;  ///< that the list was written for
  Cursors cursors;
  DeviceOrder order;
  Pacer pacer;
  StepAnswers answers;
  Recorder recorder;
  std::optional<DeviceTimes> device_times;  ///< where the device's queues carry everything
  TimeSpent spent;                          ///< nanoseconds since the beginning, waits by what was waited for

  bool trains() const { return outline.training; }
};

}  // namespace mindpipe
