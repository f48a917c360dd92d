#pragma once
#include "runtime/host_driver.h"

namespace mindpipe {

/// Drives a script where the device's queues carry the messages too: all actions are put there in list order,
/// events keep them in order, and the host waits for nothing within a step. Of a list that grows it waits
/// until the device is no more than two pieces behind.
class DeviceDriver {
 public:
  DeviceDriver(Actions& actions, Backend& backend, Waiting& waiting)
      : actions_(actions), backend_(backend), waiting_(waiting) {}

  /// Puts in what a script has. All is over when the compute queue is behind all others: what is put in there
  /// next may use whatever they do.
  void run(Script& script, StepInputs inputs, Until until);
  /// Takes when actions ran of the oldest step, or piece of a list that grows, that a script has put into the
  /// queues and that has ended.
  static void take_times(Script& script);

 private:
  void put(Script& script, StepInputs inputs, std::size_t first, std::size_t actions);
  void put_pieces(Script& script, StepInputs inputs);

  Actions& actions_;
  Backend& backend_;
  Waiting& waiting_;
};

}  // namespace mindpipe
