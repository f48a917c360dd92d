#include "runtime/script.h"

namespace mindpipe {

Script::Script(const PlannedStep& plan, const Outline& of, int rank, const ScriptPlace& place,
               std::size_t recorded_steps)
    : list(plan.program.ranks[rank]),
      outline(of),
      cursors(list),
      order(list),
      answers(place.backend, place.waiting, place.pinned),
      recorder(list.size(), recorded_steps) {
  if (place.backend.memory().kind() == Memory::Kind::counted)
    pacer = Pacer(times_on_paper(plan, rank, of.priced));
  if (place.queued) device_times.emplace(place.backend, list.size());
}

Script::Script(const Outline& of, const ScriptPlace& place, std::size_t recorded_stretches,
               std::size_t at_once)
    : grows(true),
      outline(of),
      answers(place.backend, place.waiting, place.pinned),
      recorder(recorded_stretches) {
  if (place.backend.memory().kind() == Memory::Kind::counted) pacer = Pacer(std::vector<std::int64_t>{});
  if (place.queued) device_times.emplace(place.backend, at_once);
}

void Script::extend(ListStretch stretch) {
  MP_CHECK(grows, "the list of a step does not grow");
  MP_CHECK(!pacer.paces() || stretch.times.size() == stretch.actions.size(),
           "{} times on paper of {} actions", stretch.times.size(), stretch.actions.size());
  const std::size_t gone = cursors.ended_for_good();
  list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(gone));
  for (Action& action : list) renumber(action.after, -static_cast<std::int64_t>(gone));
  dropped += static_cast<std::int64_t>(gone);
  const std::size_t first = list.size();
  for (Action& action : stretch.actions) {
    const std::int64_t place = static_cast<std::int64_t>(list.size() - first);
    for (int earlier : action.after)
      MP_CHECK(earlier < place && dropped + static_cast<std::int64_t>(first) + earlier >= 0,
               "{}, number {} of its stretch, comes after number {}", to_string(action), place, earlier);
    renumber(action.after, static_cast<std::int64_t>(first));
    list.push_back(std::move(action));
  }
  cursors.grow(list, gone);
  order.grow(list, gone);
  if (pacer.paces()) pacer.grow(stretch.times, gone);
  recorder.begin_stretch(list.size() - first, gone);
  if (device_times) device_times->drop(gone);
  put_in -= device_times ? gone : 0;
}

}  // namespace mindpipe
