#include "runtime/script.h"

namespace mindpipe {

Script::Script(const Outline& of, Feed* fed_by, Backend& backend, const ScriptForm& form)
    : closed(form.closed),
      outline(of),
      feed(fed_by),
      order(form.closed),
      recorder(form.closed ? Recorder(form.at_once, form.recorded) : Recorder()) {
  if (backend.memory().kind() == Memory::Kind::counted) pacer = Pacer::on_paper();
  if (form.queued) device_times.emplace(backend, form.at_once);
}

void Script::extend(CheckedStretch checked) {
  ListStretch stretch = checked.take();
  MP_CHECK(!closed || list.empty(), "a closed list does not go on");
  MP_CHECK(!pacer.paces() || stretch.times.size() == stretch.actions.size(),
           "{} times on paper of {} actions", stretch.times.size(), stretch.actions.size());
  const std::size_t gone = cursors.ended_for_good();
  if (pacer.paces()) pacer.forget(list, gone);
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
  if (pacer.paces()) pacer.grow(stretch.times);
  if (!closed) recorder.grow(list.size() - first, gone);
  if (device_times) device_times->drop(gone);
  put_in -= device_times ? gone : 0;
}

void Script::again(std::int64_t step) {
  MP_CHECK(closed, "a list that goes on is run but once");
  cursors.restart();
  put_in = 0;
  recorder.begin_step(step);
  if (pacer.paces()) pacer.again();
}

}  // namespace mindpipe
