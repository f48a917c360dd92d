#include "state/unit_arrivals.h"

#include <algorithm>

#include "core/check.h"
#include "state/decisions.h"
#include "state/residency.h"

namespace mindpipe {

void UnitArrivals::require_due(Reader reader, int first, int last) const {
  const Readers& readers = residency_.readers();
  if (!in_order_ || !readers.awaits(reader)) return;
  for (const UnitUse& use : readers.uses(reader, first, last))
    require_due(reader, use.unit, residency_.values().version(use.unit), readers.due(reader, use.unit));
}

/// Every older user of a unit has updated it, and its state is here; or the plan, or what carried it out, is
/// wrong.
void UnitArrivals::require_due(Reader reader, int unit, std::int64_t found, std::int64_t due) const {
  MP_CHECK(found == due || !residency_.decisions()->is_of_step(),
           "unit {} comes from another stage with version {}, and has been updated {} times. This is a "
           "mistake of the program, or of the machine; a restart goes on from the last checkpoint",
           stage_.unit(unit).name(), found, due);
  MP_CHECK(
      found == due,
      "subnet {} finds version {} of unit {}, and {} older subnets use it: its order was not kept. This is a "
      "mistake of the program, or of the machine; a restart goes on from the last checkpoint",
      reader, found, stage_.unit(unit).name(), due);
}

void UnitArrivals::ended(const Action& move) {
  if (sends(move)) return;
  residency_.moves().arrived(move);
  if (move.part + 1 < move.parts) return;
  UnitValues& values = residency_.values();
  const bool is_counted = stage_.context().backend.memory().kind() == Memory::Kind::counted;
  for (const int unit : move.units) {
    const bool of_step = residency_.decisions()->is_of_step();
    const std::int64_t due =
        of_step ? values.version(unit) : residency_.readers().due(move.owner.number, unit);
    values.set_version(unit, due);
    if (!is_counted) arrivals_.push_back({move.owner.number, unit, due, residency_.moves().version_of(unit)});
  }
}

std::vector<UnitArrivals::Arrival> UnitArrivals::take(Reader reader) {
  std::vector<Arrival> taken;
  const auto others = std::stable_partition(arrivals_.begin(), arrivals_.end(),
                                            [&](const Arrival& one) { return one.reader != reader; });
  taken.assign(others, arrivals_.end());
  arrivals_.erase(others, arrivals_.end());
  return taken;
}

}  // namespace mindpipe
