#include "runtime/pacer.h"

#include <algorithm>

namespace mindpipe {

std::vector<std::int64_t> times_on_paper(const PlannedStep& plan, const Outline& outline, int rank) {
  const PriceList prices(outline, plan.network);
  const std::vector<Action>& list = plan.program.ranks[rank];
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Span& span = plan.expected.spans[rank][i];
    const bool alone = list[i].sums == 0 && !is_communication(list[i]);
    times.push_back(alone ? span.end - span.start : prices.of(list[i], rank));
  }
  return times;
}

void Pacer::forget(const std::vector<Action>& list, std::size_t dropped) {
  const auto gone = static_cast<std::ptrdiff_t>(dropped);
  for (std::size_t i = dropped; i < list.size(); ++i)
    for (const int earlier : list[i].after)
      if (earlier < gone) not_before_[i] = std::max(not_before_[i], ended_[earlier]);
  for (auto* all : {&times_, &not_before_, &ended_}) all->erase(all->begin(), all->begin() + gone);
}

void Pacer::grow(const std::vector<std::int64_t>& more) {
  for (const std::int64_t time : more) times_.push_back(vary_ ? vary_(time) : time);
  not_before_.resize(times_.size(), now_ns());
  ended_.resize(times_.size(), 0);
}

void Pacer::again() { std::fill(not_before_.begin(), not_before_.end(), now_ns()); }

std::int64_t Pacer::ready(const Action& action, int index) const {
  std::int64_t time = not_before_[index];
  for (const int earlier : action.after) time = std::max(time, ended_[earlier]);
  return time;
}

}  // namespace mindpipe
