#include "runtime/device_times.h"

#include "core/clock.h"

namespace mindpipe {

DeviceTimes::DeviceTimes(Backend& backend, std::size_t actions) : backend_(backend), times_(actions) {
  for (Row& row : rows_) row.actions.resize(actions);
}

void DeviceTimes::begin_step() {
  MP_CHECK(begun_ - taken_ < kept, "the times of {} steps are still to be taken", kept);
  ++begun_;
  Row& row = open_row();
  row.put_ns = now_ns();
  row.begin = backend_.mark(Queue::compute);
}

/// Marks know times between each other only. The first step began when it was put in, for nothing was under
/// way; each further one, so much after the one before.
const std::vector<Recorder::Times>& DeviceTimes::take_oldest() {
  const Row& row = rows_[taken_ % kept];
  known_ns_ = taken_ == 0 ? row.put_ns : known_ns_ + backend_.nanoseconds_between(known_mark_, row.begin);
  known_mark_ = row.begin;
  ++taken_;
  const auto time_of = [&](std::uint64_t mark) {
    return known_ns_ + backend_.nanoseconds_between(known_mark_, mark);
  };
  for (std::size_t i = 0; i < times_.size(); ++i)
    times_[i] = {time_of(row.actions[i].start), time_of(row.actions[i].end)};
  return times_;
}

}  // namespace mindpipe
