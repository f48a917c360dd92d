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
  Executor(const RankState& state, Wires wires, const WorkMemory& memory, bool queued = false,
           Memory* pinned = nullptr);

  /// Makes a script ready for `run`, before the first run of any.
  Script make_script(const PlannedStep& plan, const Outline& outline, std::size_t recorded_steps = 8);
  /// Makes a script whose list grows (Script), before the first run of any.
  Script make_growing_script(const Outline& outline, std::size_t recorded_stretches = 8,
                             std::size_t at_once = 1024);

  /// Runs a step from start to end. Gives back what is known once it is under way: its own scalars where the
  /// host may read the device's memory, elsewhere those of the script's step before (of the first: none).
  std::optional<StepScalars> run(Script& script, const StepInput& input) {
    return run(script, StepInputs(&input, 1), Until::all_is_over);
  }

  /// Appends a stretch to a script that grows. Its compute queue must come to its end without any that
  /// follow, as it does where all lists of the grid are cut from lists that `give_tickets` has sorted.
  static void extend(Script& script, ListStretch stretch) { script.extend(std::move(stretch)); }
  /// Runs a script that grows to the end of what its compute queue has, each action with the input that its
  /// subnet's number names. Messages and sums may still be under way then: they move on from the backend's
  /// hook, while other things are waited for, and in the next run. Until then this script and its inputs stay
  /// where they are, and no other script is run.
  /// `left`: how many of the list's last passes the host may leave for a later run, so that what they wait
  /// for is on its way by then. (What a device's queues carry is all put in.)
  std::optional<StepScalars> run(Script& script, StepInputs inputs, std::size_t left = 0) {
    return run(script, inputs, Until::compute_is_over, left);
  }
  /// Runs a script that grows until nothing of it is under way, on the device too: a cut, at which other
  /// scripts may run.
  std::optional<StepScalars> finish(Script& script, StepInputs inputs) {
    return run(script, inputs, Until::all_is_over);
  }
  /// When the actions of a script's last steps ran, and where its time went. Both wait for the device, where
  /// it runs behind; before other scripts put much into its queues, somebody has to ask, for it forgets.
  const Recorder& recorder(Script& script);
  const TimeSpent& spent(Script& script);

  Actions& actions() { return actions_; }
  /// The hook of the backend: moves the other queues, unless that was done a moment ago.
  void look_around() {
    pace_.look([this] { host_.move_others(); });
  }

 private:
  std::optional<StepScalars> run(Script& script, StepInputs inputs, Until until, std::size_t left = 0);
  Script prepared(Script script);

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
