#include "runtime/cursors.h"

namespace mindpipe {
namespace {

/// Forgets the first `dropped` actions of the list in a queue, and numbers the others as the list does now.
void forget(Cursors::Line& line, std::size_t dropped) {
  const auto kept = std::lower_bound(line.actions.begin(), line.actions.end(), static_cast<int>(dropped));
  line.next -= std::min(line.next, static_cast<std::size_t>(kept - line.actions.begin()));
  line.actions.erase(line.actions.begin(), kept);
  for (int& action : line.actions) action -= static_cast<int>(dropped);
}

}  // namespace

void Cursors::grow(const std::vector<Action>& list, std::size_t dropped) {
  ended.erase(ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(dropped));
  forget(compute, dropped);
  for (Line& line : others) forget(line, dropped);
  for (std::size_t i = ended.size(); i < list.size(); ++i)
    line_for(queue_of(list[i])).actions.push_back(static_cast<int>(i));
  ended.resize(list.size(), 0);
}

std::size_t Cursors::ended_for_good() const {
  return static_cast<std::size_t>(std::find(ended.begin(), ended.end(), 0) - ended.begin());
}

Cursors::Line& Cursors::line_for(const QueueKey& key) {
  if (key.queue == Queue::compute) return compute;
  const auto found = std::find_if(others.begin(), others.end(), [&](const Line& l) { return l.key == key; });
  if (found != others.end()) return *found;
  others.emplace_back().key = key;
  return others.back();
}

void Cursors::restart() {
  std::fill(ended.begin(), ended.end(), 0);
  compute.next = 0;
  for (Line& line : others) line.next = 0;
}

bool Cursors::is_over() const {
  return compute.is_over() &&
         std::all_of(others.begin(), others.end(), [](const Line& l) { return l.is_over(); });
}

int Cursors::missing(const Action& action) const {
  const auto found = std::find_if(action.after.begin(), action.after.end(), [&](int i) { return !ended[i]; });
  return found == action.after.end() ? -1 : *found;
}

int Cursors::awaited(int compute_head, const std::vector<Action>& list) const {
  if (compute_head >= 0) return missing(list[compute_head]);
  const auto left = std::find_if(others.begin(), others.end(), [](const Line& l) { return !l.is_over(); });
  return left->head();
}

const Cursors::Line* Cursors::line_of(const Action& action) const {
  const QueueKey key = queue_of(action);
  const auto found =
      std::find_if(others.begin(), others.end(), [&](const Line& l) { return l.key == key && !l.is_over(); });
  return found == others.end() ? nullptr : &*found;
}

}  // namespace mindpipe
