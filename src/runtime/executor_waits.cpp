#include <algorithm>

#include "runtime/executor.h"

// What the executor waits for: for its account of the time, and in words for the watchdog.
namespace mindpipe {
namespace {

/// An action as those know it who wait for it; whose part is missing is said in ranks of the job, so no other
/// ranks stand here.
std::string name_of_wait(const Action& action) {
  if (!is_message(action)) return to_string(action);
  return action.payload == Payload::unit
             ? "the gradient of a tied table"
             : fmt::format("{} of micro-batch {}", name_of(action.payload), action.micro_batch);
}

}  // namespace

/// The action that the compute queue waits for; at the end of a step, one of those that are left.
int Executor::awaited(int compute_head) const {
  const auto missing = [&](int action) {
    const auto& after = list_[action].after;
    const auto found = std::find_if(after.begin(), after.end(), [&](int i) { return !ended_[i]; });
    return found == after.end() ? action : *found;
  };
  int action = compute_head >= 0 ? missing(compute_head) : scalars_at_;
  if (action == scalars_at_ && !ended_[scalars_at_]) action = missing(scalars_at_);
  if (!ended_[action]) return action;
  for (const Line& line : others_)
    if (line.next < line.actions.size()) return line.actions[line.next];
  return action;
}

std::int64_t& Executor::wait_for(const Action& awaited) {
  switch (awaited.kind) {
    case ActionKind::reduce:
    case ActionKind::gather:
      return spent_.wait_data;
    case ActionKind::fetch:
    case ActionKind::evict:
    case ActionKind::stash:
    case ActionKind::unstash:
      return spent_.wait_copy;
    default:
      return spent_.wait_pipeline;
  }
}

/// The message or sum at the bottom of a wait, and whose part of it is missing. What is awaited may itself
/// stand behind others in its queue or wait for an action of another queue, so this goes down until it meets
/// one that has been started.
std::string Executor::describe_wait(int awaited) const {
  for (std::size_t depth = 0; depth < list_.size(); ++depth) {
    const Action& action = list_[awaited];
    const auto line = std::find_if(others_.begin(), others_.end(), [&](const Line& l) {
      return l.key == queue_of(action) && l.next < l.actions.size();
    });
    if (line == others_.end()) break;
    const int head = line->actions[line->next];
    if (!line->begun.empty()) {
      const auto& requests = line->begun.front().requests;
      const auto open = std::find_if(requests.begin(), requests.end(), [&](std::int64_t r) {
        return is_message(list_[head]) ? !wires_.channels->done(r) : !wires_.reductions.done(r);
      });
      if (open == requests.end()) return name_of_wait(list_[head]);
      return fmt::format(
          "{}, {}", name_of_wait(list_[head]),
          is_message(list_[head]) ? wires_.channels->describe(*open) : wires_.reductions.describe(*open));
    }
    const auto& after = list_[head].after;
    const auto earlier = std::find_if(after.begin(), after.end(), [&](int i) { return !ended_[i]; });
    if (earlier == after.end()) return name_of_wait(list_[head]);
    awaited = *earlier;
  }
  return name_of_wait(list_[awaited]);
}

}  // namespace mindpipe
