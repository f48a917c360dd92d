#pragma once
#include "runtime/actions.h"

namespace mindpipe {

/// Drives a script where the device's queues carry the messages too: all actions are put there in list order,
/// events keep them in order, and the host waits for nothing.
class DeviceDriver {
 public:
  DeviceDriver(Actions& actions, Backend& backend) : actions_(actions), backend_(backend) {}

  void run(Script& script, const StepInput& input);
  /// Takes when actions ran of the oldest step that a script has put into the queues and that has ended.
  static void take_times(Script& script);

 private:
  Actions& actions_;
  Backend& backend_;
};

}  // namespace mindpipe
