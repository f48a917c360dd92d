#pragma once
#include "runtime/device_driver.h"
#include "runtime/feed.h"
#include "runtime/host_driver.h"

namespace mindpipe {

/// Runs scripts of one rank over one state, each as its feed brings it on. Every queue is strictly first in,
/// first out; nothing is ever chosen. One thread does everything. Where the host carries the messages, they
/// move in between, from the backend's progress hook and while waiting; where the device's queues do, the
/// host puts the list into them.
class Executor {
 public:
  /// `queued`: whether messages and sums are put into the backend's current queue, as its operations are, and
  /// done for the host with that. (So is everything where nobody else takes part.)
  Executor(const RankState& state, Wires wires, const WorkMemory& memory, bool queued = false);

  /// Makes a script of a list that is run again and again, where the device has come to the end of all
  /// others.
  Script make_closed_script(const PlannedStep& plan, const Outline& outline, Feed& feed,
                            std::size_t recorded_runs = 8);
  /// Makes a script that goes on, and is empty yet, in the same place.
  Script make_open_script(const Outline& outline, Feed& feed, std::size_t at_once = 1024);

  /// Takes the times of a script that is run no more, so that the device need not keep its marks.
  void end(Script& script);

  /// Runs a feed's script from a drain to the next one, as the feed brings it on. Nothing of the backend's
  /// memory is taken.
  void run(Feed& feed);
  /// Appends a stretch to a script. A stretch must be able to finish its compute queue without later ones, as
  /// it is where tickets ascend in all lists of the grid.
  static void extend(Script& script, CheckedStretch stretch) { script.extend(std::move(stretch)); }
  /// Runs a script to the end of what its compute queue has, each action with the input that its subnet's
  /// number names. Messages and sums may still be under way then: they move on from the backend's hook, while
  /// other things are waited for, and in the next run. Until then this script and its inputs stay where they
  /// are, and no other script is run.
  /// `left`: how many of the list's last passes the host may leave for a later run, so that what they wait
  /// for is on its way by then. (What a device's queues carry is all put in.)
  void run(Script& script, StepInputs inputs, std::size_t left = 0) {
    run(script, inputs, Until::compute_is_over, left);
  }
  /// Runs a script until nothing of it is under way: a drain, at which other scripts may run. A device, too,
  /// has come to the end of an open list then.
  void finish(Script& script, StepInputs inputs);
  /// When the actions of a script's last steps ran, and where its time went. Both wait for the device, where
  /// it runs behind; before other scripts put much into its queues, somebody has to ask, for it forgets.
  const Recorder& recorder(Script& script);
  const TimeSpent& spent(Script& script);

  /// Makes the trainings of this rank slower than they are, where the host drives them; gives back whether
  /// it does.
  bool slow_down(const Slowness& slowness) {
    host_.slow_down(slowness);
    return !queued_;
  }

  Actions& actions() { return actions_; }
  /// The hook of the backend: moves the other queues, unless that was done a moment ago.
  void look_around() {
    pace_.look([this] { host_.move_others(); });
  }

 private:
  void run(Script& script, StepInputs inputs, Until until, std::size_t left = 0);
  Script prepared(Script script);

  Stage& stage_;
  Backend& backend_;
  bool queued_;
  Actions actions_;
  HostDriver host_;
  DeviceDriver device_;
  Pace pace_;  ///< pace of looks from within the backend's operations
  Script* running_ = nullptr;
  std::size_t marks_ = 0;  ///< marks of the device's time that all scripts together keep
};

}  // namespace mindpipe
