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
  if (place.backend.memory().kind() == Memory::Kind::counted) pacer = Pacer(plan, rank);
  if (place.queued) device_times.emplace(place.backend, list.size());
}

}  // namespace mindpipe
