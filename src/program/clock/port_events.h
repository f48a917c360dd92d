#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "program/clock/ports.h"

namespace mindpipe {

/// What happens at times that are known, and what leaves ports, in one order: of one moment first what
/// leaves, then what happens, as it was put. Whoever runs it lets free ports begin (serve) when all of a
/// moment is told.
template <class What>
class PortEvents {
 public:
  explicit PortEvents(const std::optional<Unseen>& unseen = {}) : ports_(unseen) {}

  void put(std::int64_t time, What what) {
    events_.push_back({time, made_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
  }
  void offer(const Ports::Transfer& transfer, std::int64_t now, int turns = 1) {
    ports_.offer(transfer, now, turns);
  }
  void serve(std::int64_t now) { ports_.serve(now); }
  const Ports& ports() const { return ports_; }

  /// The next moment at which something happens or leaves; Ports::never: nothing does.
  std::int64_t next() const {
    return std::min(events_.empty() ? Ports::never : events_.front().time, ports_.next());
  }
  /// Calls leave(left) and happen(what) for all of this moment, of what they put as well.
  template <class Leave, class Happen>
  void at(std::int64_t now, const Leave& leave, const Happen& happen) {
    while (ports_.next() == now) leave(ports_.leave());
    while (!events_.empty() && events_.front().time == now) {
      std::pop_heap(events_.begin(), events_.end(), std::greater<>());
      const What what = std::move(events_.back().what);
      events_.pop_back();
      happen(what);
    }
  }
  /// Goes on until nothing is left. Calls leave(left, now) and happen(what, now).
  template <class Leave, class Happen>
  void run(const Leave& leave, const Happen& happen) {
    for (std::int64_t now = next(); now != Ports::never; now = next()) {
      at(
          now, [&](const Ports::Left& left) { leave(left, now); },
          [&](const What& what) { happen(what, now); });
      serve(now);
    }
  }

 private:
  struct Event {
    std::int64_t time = 0, order = 0;
    What what;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  Ports ports_;
  std::vector<Event> events_;  ///< a heap
  std::int64_t made_ = 0;
};

}  // namespace mindpipe
