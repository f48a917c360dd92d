#include "program/check/window_book.h"

#include <algorithm>

namespace mindpipe {

WindowBook::WindowBook(Reading& reading, const SubnetRules& rules, std::int64_t first)
    : reading_(reading), rules_(rules), first_window_(rules.window > 0 ? first / rules.window : 0) {
  applied_ = first_window_;
  if (rules.window == 0) return;
  for (const int unit : reading.outline.units_of_rank(reading.outline.stage_of_rank(reading.rank)))
    if (reading.outline.units[unit].shared) shared_.push_back(unit);
}

bool WindowBook::is_of_shared(const Action& action) const {
  return names_unit(action) && reading_.outline.units[action.unit].shared;
}

/// The subnets of a window that run in a lane, as far as they are known.
std::int64_t WindowBook::size_of(std::int64_t window, int lane) const {
  const std::int64_t lanes = reading_.outline.lanes;
  const auto below = [&](std::int64_t end) { return (end + lanes - 1 - lane) / lanes; };
  const std::int64_t first = window * rules_.window, end = std::min(first + rules_.window, known_);
  return std::max<std::int64_t>(0, below(end) - below(first));
}

void WindowBook::see(bool ends_pass) {
  const Action& action = reading_.action();
  if (shared_.empty()) return;
  if (is_pass(action)) return pass(ends_pass);
  if (!is_of_shared(action)) return;
  if (!std::binary_search(shared_.begin(), shared_.end(), action.unit))
    return reading_.wrong("unit {} does not live here", action.unit);
  Window& window = windows_[action.owner.number];
  if (action.kind == ActionKind::update) update(window);
  else exchange(window);
}

void WindowBook::pass(bool ends) {
  const Action& action = reading_.action();
  const std::int64_t window = action.owner.number / rules_.window;
  // The version of two windows before is there until this one has passed.
  if (applied_ + 1 < window || applied_ > window)
    reading_.wrong("reads what all share in the version of window {}, not {}", applied_ - 1, window - 2);
  if (!is_backward(action)) return;
  windows_[window].last_backward = reading_.here();
  if (ends && action.micro_batch + 1 == reading_.outline.micro_batches) ++windows_[window].passed;
}

void WindowBook::exchange(Window& window) {
  const Action& action = reading_.action();
  const Outline& outline = reading_.outline;
  Exchange& unit = window.units[action.unit];
  const bool is_last = action.part + 1 == action.parts, is_sum = action.kind == ActionKind::reduce;
  if (is_sum || sends(action)) {
    const bool are_added = is_sum || outline.data == 1;
    const bool is_complete =
        window.passed == size_of(action.owner.number, outline.lane_of_rank(reading_.rank));
    if (!is_complete || !reading_.has_ended(are_added ? window.last_backward : unit.summed))
      reading_.wrong("does not wait for what its subnets add");
  } else if (action.owner.number >= first_window_ + 2 &&
             (applied_ < action.owner.number - 1 ||
              !reading_.has_ended(applied_at_[action.owner.number % 2]))) {
    reading_.wrong("arrives where window {} may still be read", action.owner.number - 2);
  }
  ListEntry& done = is_sum          ? unit.summed
                    : sends(action) ? unit.sent[action.peer]
                                    : unit.received[action.peer];
  if (done.exists()) reading_.wrong("runs a second time");
  if (is_last) done = reading_.here();
}

/// What a window adds to a unit is summed over data where it comes from, and is on all ranks of use.
void WindowBook::require_all(const Exchange& unit) {
  const Action& action = reading_.action();
  const Outline& outline = reading_.outline;
  const auto adds = [&](int rank) { return size_of(action.owner.number, outline.lane_of_rank(rank)) > 0; };
  const bool adds_here = adds(reading_.rank);
  if (adds_here && outline.data > 1 && !reading_.has_ended(unit.summed))
    reading_.wrong("does not wait for its sum over data");
  const auto require = [&](const std::map<int, ListEntry>& done, int peer, const char* way) {
    const auto found = done.find(peer);
    if (found == done.end() || !reading_.has_ended(found->second))
      reading_.wrong("does not wait for what others add (what goes {} rank {})", way, peer);
  };
  for (const int peer : outline.ranks_of(action.unit)) {
    if (peer == reading_.rank) continue;
    if (adds_here) require(unit.sent, peer, "to");
    if (adds(peer)) require(unit.received, peer, "from");
  }
}

void WindowBook::update(Window& window) {
  const Action& action = reading_.action();
  if (window.passed < size_of(action.owner.number, reading_.outline.lane_of_rank(reading_.rank)))
    reading_.wrong("{} of its subnets have passed", window.passed);
  if (action.owner.number != applied_) reading_.wrong("window {} is next", applied_);
  Exchange& unit = window.units[action.unit];
  require_all(unit);
  if (unit.is_applied) reading_.wrong("is updated a second time");
  unit.is_applied = true;
  applied_at_[action.owner.number % 2] = reading_.here();
  if (!std::all_of(shared_.begin(), shared_.end(), [&](int one) { return window.units[one].is_applied; }))
    return;
  applied_ = action.owner.number + 1;
  windows_.erase(action.owner.number);
}

void WindowBook::end() {
  for (const auto& [number, window] : windows_)
    reading_.missing("window {} is not applied at a drain", number);
}

}  // namespace mindpipe
