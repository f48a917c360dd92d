#include "runtime/cursors.h"

#include <map>

namespace mindpipe {

Cursors::Cursors(const std::vector<Action>& list) : ended(list.size(), 0) {
  std::map<QueueKey, std::size_t> place;
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    const QueueKey key = queue_of(list[i]);
    if (key.queue == Queue::compute) {
      compute.actions.push_back(i);
      continue;
    }
    const auto [found, fresh] = place.try_emplace(key, others.size());
    if (fresh) others.emplace_back().key = key;
    others[found->second].actions.push_back(i);
  }
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

const Cursors::Line* Cursors::line_of(const Action& action) const {
  const QueueKey key = queue_of(action);
  const auto found =
      std::find_if(others.begin(), others.end(), [&](const Line& l) { return l.key == key && !l.is_over(); });
  return found == others.end() ? nullptr : &*found;
}

}  // namespace mindpipe
