#include "program/clock/ports.h"

#include <algorithm>

namespace mindpipe {

bool Ports::is_before(const Waiting& a, const Waiting& b) {
  const auto turn = [](const Waiting& waiting) {
    return PortRule::turn(waiting.transfer.traffic, waiting.offered, waiting.transfer.to, waiting.order);
  };
  return turn(a) < turn(b);
}

bool Ports::is_later(const Leaving& a, const Leaving& b) {
  const auto turn = [](const Leaving& leaving) {
    const Transfer& transfer = leaving.transfer;
    return PortRule::leave(leaving.left, transfer.traffic, transfer.from, transfer.to, leaving.order);
  };
  return turn(a) > turn(b);
}

std::size_t Ports::place(int rank, Level level) {
  const std::size_t place = static_cast<std::size_t>(rank) * levels + static_cast<std::size_t>(level);
  if (place >= ports_.size()) ports_.resize(static_cast<std::size_t>(rank + 1) * levels);
  return place;
}

void Ports::touch(std::size_t port) {
  if (ports_[port].is_touched || (!unseen_ && !may_begin(ports_[port], TrafficClass{}))) return;
  ports_[port].is_touched = true;
  touched_.push_back(port);
}

void Ports::offer(Transfer transfer, std::int64_t now, int turns) {
  const std::size_t out = place(transfer.from, transfer.level);
  const std::int64_t takes = transfer.takes;
  for (int turn = 0; turn < turns; ++turn) {
    transfer.takes = of_turn(turn, turns, takes);
    transfer.goes_on = turn + 1 < turns;
    ports_[out].waiting.push_back({transfer, now, offers_++});
  }
  touch(out);
}

void Ports::serve(std::int64_t now) {
  for (const std::size_t number : touched_) {
    ports_[number].is_touched = false;
    while (begin_next(number, now)) {
    }
  }
  touched_.clear();
}

/// A last turn whose end is known takes until then, if that is about as long as said.
void Ports::set_known_end(Transfer& transfer, std::int64_t now) {
  constexpr std::int64_t little = 16;  // of what it takes
  const std::int64_t takes = transfer.known_to_leave - now;
  if (!transfer.goes_on && takes > 0 && std::abs(takes - transfer.takes) <= transfer.takes / little)
    transfer.takes = takes;
}

/// Lets the first begin of those that find the port free; false: there is none.
bool Ports::begin_next(std::size_t number, std::int64_t now) {
  std::vector<Waiting>& waiting = ports_[number].waiting;
  if (!unseen_ && !may_begin(ports_[number], TrafficClass{})) return false;
  auto first = waiting.end();
  for (auto one = waiting.begin(); one != waiting.end(); ++one)
    if (may_begin(ports_[number], one->transfer.traffic) &&
        (first == waiting.end() || is_before(*one, *first)))
      first = one;
  if (first == waiting.end()) return false;
  Waiting next = *first;
  *first = waiting.back();
  waiting.pop_back();
  const std::size_t in = place(next.transfer.to, next.transfer.level);
  Port& out = ports_[number];
  if (next.transfer.known_to_leave != never) set_known_end(next.transfer, now);
  const std::int64_t left = now + next.transfer.takes;
  for (int view = 0; view < views_with(next.transfer.traffic); ++view) {
    ++out.views[view].leaving;
    out.views[view].busy_until = std::max(out.views[view].busy_until, left);
  }
  leaving_.push_back({next, left, ports_[in].views[view_of(next.transfer.traffic)].taken});
  std::push_heap(leaving_.begin(), leaving_.end(), is_later);
  return true;
}

Ports::Left Ports::leave() {
  std::pop_heap(leaving_.begin(), leaving_.end(), is_later);
  const Leaving leaving = leaving_.back();
  leaving_.pop_back();
  const Transfer& transfer = leaving.transfer;
  Port& in = ports_[place(transfer.to, transfer.level)];
  const View& found = in.views[view_of(transfer.traffic)];
  const std::int64_t others = found.taken - leaving.taken_before,
                     arrived = PortRule::arrived(leaving.left, transfer.takes, found.in_free, others);
  const std::size_t out = place(transfer.from, transfer.level);
  for (int view = 0; view < views_with(transfer.traffic); ++view) {
    in.views[view].in_free = std::max(in.views[view].in_free, arrived);
    in.views[view].taken += transfer.takes;
    --ports_[out].views[view].leaving;
  }
  touch(out);
  return {transfer, leaving.offered, leaving.left, arrived};
}

/// One that does not wait leaves: it ends when the port is free again.
std::int64_t Ports::expected(int from, Level level, TrafficClass traffic, int number,
                             std::int64_t now) const {
  const Port& out = ports_[static_cast<std::size_t>(from) * levels + static_cast<std::size_t>(level)];
  const int view = view_of(traffic);
  std::int64_t time = std::max(now, out.views[view].busy_until);
  const Waiting* own = nullptr;  // its last turn
  for (const Waiting& waiting : out.waiting)
    if (waiting.transfer.number == number && (own == nullptr || is_before(*own, waiting))) own = &waiting;
  if (own == nullptr) return time;
  for (const Waiting& waiting : out.waiting)
    if (!is_before(*own, waiting) && view < views_with(waiting.transfer.traffic))
      time += waiting.transfer.takes;
  return time;
}

}  // namespace mindpipe
