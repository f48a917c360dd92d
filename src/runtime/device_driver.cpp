#include "runtime/device_driver.h"

#include "runtime/time_account.h"

namespace mindpipe {

void DeviceDriver::run(Script& script, const StepInput& input) {
  DeviceOrder& order = script.order;
  DeviceTimes& times = *script.device_times;
  order.begin_step(backend_);
  times.begin_step();
  for (int index = 0; index < static_cast<int>(script.list.size()); ++index) {
    const Action& action = script.list[index];
    order.before(backend_, index);
    times.before(index, order.queue(index));
    const Request request = actions_.start(script, action, input);
    MP_CHECK(actions_.is_done(request), "{} is not carried by the device's queues", to_string(action));
    times.behind(index, order.queue(index));
    order.behind(backend_, index);
  }
  order.end_step(backend_);
}

/// Messages and sums run beside the compute queue, so what it waits for is not told apart: it is the rest.
void DeviceDriver::take_times(Script& script) {
  const std::size_t ago = script.device_times->open() - 1;
  const std::vector<Recorder::Times>& times = script.device_times->take_oldest();
  for (std::size_t i = 0; i < script.list.size(); ++i) {
    script.recorder.set(ago, i, times[i]);
    if (script.list[i].queue == Queue::compute)
      work_of(script.spent, script.list[i].kind) += times[i].end - times[i].start;
  }
}

}  // namespace mindpipe
