#include "program/clock/ports.h"

#include <algorithm>
#include <tuple>

namespace mindpipe {

bool Ports::is_before(const Waiting& a, const Waiting& b) {
  return std::tuple(a.transfer.traffic, a.offered, a.transfer.to, a.order) <
         std::tuple(b.transfer.traffic, b.offered, b.transfer.to, b.order);
}

bool Ports::is_later(const Leaving& a, const Leaving& b) {
  return std::tuple(a.left, a.transfer.traffic, a.transfer.from, a.transfer.to, a.order) >
         std::tuple(b.left, b.transfer.traffic, b.transfer.from, b.transfer.to, b.order);
}

std::size_t Ports::place(int rank, Level level) {
  const std::size_t place = static_cast<std::size_t>(rank) * levels + static_cast<std::size_t>(level);
  if (place >= ports_.size()) ports_.resize(static_cast<std::size_t>(rank + 1) * levels);
  return place;
}

void Ports::touch(std::size_t port) {
  if (ports_[port].is_touched || ports_[port].busy_until >= 0) return;
  ports_[port].is_touched = true;
  touched_.push_back(port);
}

void Ports::offer(const Transfer& transfer, std::int64_t now) {
  const std::size_t out = place(transfer.from, transfer.level);
  ports_[out].waiting.push_back({transfer, now, offers_++});
  touch(out);
}

void Ports::serve(std::int64_t now) {
  for (const std::size_t number : touched_) {
    ports_[number].is_touched = false;
    if (ports_[number].waiting.empty()) continue;
    std::vector<Waiting>& waiting = ports_[number].waiting;
    const auto first = std::min_element(waiting.begin(), waiting.end(), is_before);
    const Waiting next = *first;
    *first = waiting.back();
    waiting.pop_back();
    const std::size_t in = place(next.transfer.to, next.transfer.level);
    Port& out = ports_[number];
    out.busy_until = now + next.transfer.takes;
    out.leaves = next.transfer.number;
    leaving_.push_back({next, out.busy_until, ports_[in].taken});
    std::push_heap(leaving_.begin(), leaving_.end(), is_later);
  }
  touched_.clear();
}

Ports::Left Ports::leave() {
  std::pop_heap(leaving_.begin(), leaving_.end(), is_later);
  const Leaving leaving = leaving_.back();
  leaving_.pop_back();
  const Transfer& transfer = leaving.transfer;
  Port& in = ports_[place(transfer.to, transfer.level)];
  const std::int64_t others = in.taken - leaving.taken_before,
                     arrived =
                         std::max(leaving.left, std::min(in.in_free + transfer.takes, leaving.left + others));
  in.in_free = std::max(in.in_free, arrived);
  in.taken += transfer.takes;
  const std::size_t out = place(transfer.from, transfer.level);
  ports_[out].busy_until = -1;
  touch(out);
  return {transfer, leaving.offered, leaving.left, arrived};
}

std::int64_t Ports::expected(int from, Level level, int number, std::int64_t now) const {
  const Port& out = ports_[static_cast<std::size_t>(from) * levels + static_cast<std::size_t>(level)];
  std::int64_t time = std::max(now, out.busy_until);
  if (out.busy_until >= 0 && out.leaves == number) return time;
  const auto own = std::find_if(out.waiting.begin(), out.waiting.end(),
                                [&](const Waiting& waiting) { return waiting.transfer.number == number; });
  for (const Waiting& waiting : out.waiting)
    if (!is_before(*own, waiting)) time += waiting.transfer.takes;
  return time;
}

}  // namespace mindpipe
