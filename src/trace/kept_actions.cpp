#include "trace/kept_actions.h"

#include "core/check.h"

namespace mindpipe {
namespace {

bool sees_units(const Action& action) { return is_pass(action) || action.kind == ActionKind::update; }

}  // namespace

void KeptActions::see(std::vector<UnitVersion> units, std::vector<UnitVersion> shared) {
  if (keeps()) seen_.push_back({std::move(units), std::move(shared)});
}

void KeptActions::hear(const std::vector<Action>& list, std::int64_t place, std::size_t ended,
                       Recorder& recorder, std::int64_t known) {
  for (; heard_ < place + static_cast<std::int64_t>(ended); ++heard_) {
    const auto index = static_cast<std::size_t>(heard_ - place);
    const Recorder::Times& times = recorder.times(0, index);
    pass_times_.add(list[index], times);
    if (keeps()) keep(list[index], times, static_cast<int>(index));
  }
  for (const Recorder::Sum& sum : recorder.take_sums())
    if (keeps() && sum.action >= 0) sums_.push_back({.sum = sum, .owner = list[sum.action].owner});
  std::erase_if(actions_, [&](const KeptAction& kept) { return is_old(kept.action.owner, known); });
  std::erase_if(sums_, [&](const KeptSum& kept) { return is_old(kept.owner, known); });
}

void KeptActions::keep(const Action& action, const Recorder::Times& times, int index) {
  KeptAction& kept = actions_.emplace_back(KeptAction{.action = action, .times = times, .place = heard_});
  for (int& earlier : kept.action.after) earlier = index - earlier;
  if (!sees_units(action)) return;
  MP_CHECK(!seen_.empty(), "nothing is known of the units of {}", to_string(action));
  kept.units = std::move(seen_.front().units);
  kept.shared = std::move(seen_.front().shared);
  seen_.pop_front();
}

bool KeptActions::is_old(const Owner& owner, std::int64_t known) const {
  const std::int64_t last = owner.of == Owner::window ? (owner.number + 1) * window_ - 1 : owner.number;
  return last < known - subnets_;
}

}  // namespace mindpipe
