#pragma once
#include <optional>

#include "runtime/device_driver.h"
#include "runtime/host_driver.h"

namespace mindpipe {

/// Runs scripts of one rank over one state. Every queue is strictly first in, first out; nothing is ever
/// chosen. One thread does everything. Where the host carries the messages, they move in between, from the
/// backend's progress hook and while waiting; where the device's queues do, the host puts the list into them
/// and waits for nothing.
class Executor {
 public:
  /// `queued`: whether messages and sums are put into the backend's current queue, as its operations are, and
  /// done for the host with that. (So is everything where nobody else takes part.) `pinned`: memory of the
  /// host, where it may not read the backend's.
  Executor(Stage& stage, GradientUpdates& updates, Wires wires, const PassMemory& memory, bool queued = false,
           Memory* pinned = nullptr);

  /// Makes a script ready for `run`, before the first run of any.
  Script make_script(const PlannedStep& plan, const Outline& outline, std::size_t recorded_steps = 8);

  /// Runs a script from start to end. Gives back what is known once the step is under way: its own scalars
  /// where the host may read the device's memory, elsewhere those of the script's step before (of the first:
  /// none).
  std::optional<StepScalars> run(Script& script, const StepInput& input);
  /// When the actions of a script's last steps ran, and where its time went. Both wait for the device, where
  /// it runs behind.
  const Recorder& recorder(Script& script);
  const TimeSpent& spent(Script& script);

  Actions& actions() { return actions_; }
  /// The hook of the backend: moves the other queues, unless that was done a moment ago.
  void look_around() {
    pace_.look([this] { host_.move_others(); });
  }

 private:
  Stage& stage_;
  ScriptPlace place_;
  Actions actions_;
  HostDriver host_;
  DeviceDriver device_;
  Pace pace_;  ///< of looks from within the backend's operations
  Script* running_ = nullptr;
  std::size_t marks_ = 0;  ///< of the device's time, that all scripts together keep
};

}  // namespace mindpipe
