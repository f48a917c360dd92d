#include "trace/kept_actions.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"

namespace mindpipe {
namespace {

bool sees_units(const Action& action) { return is_pass(action) || action.kind == ActionKind::update; }

}  // namespace

void KeptActions::see(std::vector<UnitVersion> units, std::vector<UnitVersion> shared) {
  if (keeps()) seen_.push_back({std::move(units), std::move(shared)});
}

void KeptActions::add(const Action& action, const Recorder::Times& times, int index, std::int64_t place) {
  if (!keeps()) return;
  KeptAction& kept = actions_.emplace_back(KeptAction{.action = action, .times = times, .place = place});
  for (int& earlier : kept.action.after) earlier = index - earlier;
  if (!sees_units(action)) return;
  MP_CHECK(!seen_.empty(), "nothing is known of the units of {}", to_string(action));
  kept.units = std::move(seen_.front().units);
  kept.shared = std::move(seen_.front().shared);
  seen_.pop_front();
}

void KeptActions::add_sums(const std::vector<Recorder::Sum>& sums) {
  for (const Recorder::Sum& sum : sums)
    if (keeps()) sums_.push_back({sum});
}

bool KeptActions::is_old(const KeptAction& kept, std::int64_t known) const {
  const auto& [of, number] = kept.action.owner;
  const std::int64_t subnet = of == Owner::window ? (number + 1) * window_ - 1 : number;
  return subnet < known - subnets_;
}

void KeptActions::forget(std::int64_t known) {
  while (!actions_.empty() && is_old(actions_.front(), known)) actions_.pop_front();
  while (!actions_.empty() && !sums_.empty() && sums_.front().sum.end <= actions_.front().times.start)
    sums_.pop_front();
}

std::vector<KeptAction> KeptActions::last(std::int64_t known) const {
  std::vector<KeptAction> last;
  std::copy_if(actions_.begin(), actions_.end(), std::back_inserter(last),
               [&](const KeptAction& kept) { return !is_old(kept, known); });
  return last;
}

}  // namespace mindpipe
