#include "runtime/device_times.h"

#include "core/clock.h"

namespace mindpipe {

DeviceTimes::DeviceTimes(Backend& backend, std::size_t most) : backend_(backend), most_(most) {
  for (Row& row : rows_) row.actions.reserve(most);
  taken_last_.actions.reserve(most);
}

void DeviceTimes::begin(std::size_t first, std::size_t actions) {
  MP_CHECK(begun_ - taken_ < kept, "the times of {} steps are still to be taken", kept);
  MP_CHECK(actions <= most_, "{} actions at a time, with marks for {}", actions, most_);
  const bool is_alone = open() == 0;
  ++begun_;
  Row& row = open_row();
  row.is_alone = is_alone;
  row.first = first;
  row.actions.resize(actions);
  row.put_ns = now_ns();
  row.begin = backend_.mark(Queue::compute);
}

void DeviceTimes::drop(std::size_t dropped) {
  for (std::int64_t row = taken_; row < begun_; ++row) rows_[row % kept].first -= dropped;
}

/// Marks know times between each other only. A step before which nothing was under way began when it was put
/// in; each other one, so much after the one before.
const DeviceTimes::Piece& DeviceTimes::take_oldest() {
  const Row& row = rows_[taken_ % kept];
  known_ns_ = row.is_alone ? row.put_ns : known_ns_ + backend_.nanoseconds_between(known_mark_, row.begin);
  known_mark_ = row.begin;
  ++taken_;
  const auto time_of = [&](std::uint64_t mark) {
    return known_ns_ + backend_.nanoseconds_between(known_mark_, mark);
  };
  taken_last_.first = row.first;
  taken_last_.actions.clear();
  for (const Marks& marks : row.actions)
    taken_last_.actions.push_back({time_of(marks.start), time_of(marks.end)});
  return taken_last_;
}

}  // namespace mindpipe
