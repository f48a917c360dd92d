#pragma once
#include "runtime/host_driver.h"

namespace mindpipe {

/// Drives a script where the device's queues carry the messages too: all actions are put there in list order,
/// in pieces, and events keep them in order. The host waits for nothing within a piece; before one of an open
/// list, until the device is no more than two pieces behind.
class DeviceDriver {
 public:
  DeviceDriver(Actions& actions, Backend& backend, Waiting& waiting)
      : actions_(actions), backend_(backend), waiting_(waiting) {}

  /// Puts in what a script has. All is over when the compute queue is behind all others: what is put in there
  /// next may use whatever they do.
  void run(Script& script, StepInputs inputs, Until until);
  /// Takes when the actions of the oldest piece ran that a script has put into the queues and that has ended.
  static void take_times(Script& script);

 private:
  void put(Script& script, StepInputs inputs, std::size_t first, std::size_t actions);
  void await_room(Script& script);

  Actions& actions_;
  Backend& backend_;
  Waiting& waiting_;
};

}  // namespace mindpipe
