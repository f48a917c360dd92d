#include "runtime/device_driver.h"

#include "runtime/time_account.h"

namespace mindpipe {

void DeviceDriver::run(Script& script, StepInputs inputs, Until until) {
  if (script.is_drained) script.order.begin_step(backend_);
  script.is_drained = until == Until::all_is_over;
  while (script.put_in < script.list.size()) {
    if (!script.closed) await_room(script);
    const std::size_t first = script.put_in,
                      actions = std::min(script.device_times->most(), script.list.size() - first);
    put(script, inputs, first, actions);
    script.put_in += actions;
    if (!script.closed) script.order.note_end(backend_);
  }
  if (script.is_drained) script.order.end_step(backend_);
}

void DeviceDriver::put(Script& script, StepInputs inputs, std::size_t first, std::size_t actions) {
  DeviceOrder& order = script.order;
  DeviceTimes& times = *script.device_times;
  times.begin(first, actions);
  for (int index = static_cast<int>(first); index < static_cast<int>(first + actions); ++index) {
    const Action& action = script.list[index];
    order.before(backend_, index);
    times.before(index, order.queue(index));
    const Request request = actions_.start(script, action, input_of(action, inputs));
    MP_CHECK(actions_.carriers().is_done(request), "{} is not carried by the device's queues",
             to_string(action));
    actions_.ended(script, action);
    times.behind(index, order.queue(index));
    order.behind(backend_, index);
  }
}

void DeviceDriver::await_room(Script& script) {
  constexpr std::size_t ahead = 2;
  while (script.device_times->open() >= ahead) {
    waiting_.until([&] { return script.order.has_come_to_an_end(backend_); },
                   [] { return std::string("the device, which is two stretches behind"); });
    take_times(script);
  }
}

/// Messages and sums run beside the compute queue, so what it waits for is not told apart: it is the rest.
void DeviceDriver::take_times(Script& script) {
  const std::size_t ago = script.device_times->open() - 1;
  const auto& [first, times] = script.device_times->take_oldest();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const int index = static_cast<int>(first + i);
    if (script.closed) {
      script.recorder.set(ago, i, times[i]);
    } else {
      script.recorder.start(index, times[i].start);
      script.recorder.end(index, times[i].end);
      script.cursors.ended[index] = 1;
    }
    const Action& action = script.list[index];
    if (action.queue == Queue::compute) work_of(script.spent, action.kind) += times[i].end - times[i].start;
  }
  if (!script.closed) script.order.forget_end();
}

}  // namespace mindpipe
