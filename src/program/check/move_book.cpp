#include "program/check/move_book.h"

#include "program/moving_step.h"

namespace mindpipe {

void MoveBook::see() {
  const Action& action = reading_.action();
  if (is_move(action)) return state();
  if (action.payload == Payload::unit_gradient) return gradient();
  if (shape_of<UnitTraits>(action) != nullptr) update();
}

/// Whether the message that is looked at goes the way of a unit.
bool MoveBook::is_on_way(int unit) const {
  const Action& action = reading_.action();
  const auto way = way_of(reading_.outline, unit);
  if (!way) return false;
  return sends(action) ? *way == std::pair(reading_.rank, action.peer)
                       : *way == std::pair(action.peer, reading_.rank);
}

void MoveBook::state() {
  const Action& action = reading_.action();
  for (const int unit : action.units) {
    if (!is_on_way(unit)) reading_.wrong("unit {} does not move so", unit);
    Handed& handed = handed_[unit];
    if (handed.state.exists()) reading_.wrong("the state of unit {} moves a second time", unit);
    if (action.part + 1 == action.parts) handed.state = reading_.here();
  }
}

/// Gradients of units that stay are another book's.
void MoveBook::gradient() {
  const Action& action = reading_.action();
  if (!way_of(reading_.outline, action.unit)) return;
  if (!is_on_way(action.unit)) reading_.wrong("the gradient does not follow its unit");
  if (action.part + 1 == action.parts) handed_[action.unit].gradient = reading_.here();
}

void MoveBook::update() {
  const int unit = reading_.action().unit;
  const auto way = way_of(reading_.outline, unit);
  if (!way || way->second != reading_.rank) return;
  const Handed& handed = handed_[unit];
  if (!reading_.has_ended(handed.state))
    reading_.wrong("does not wait for the state that comes from rank {}", way->first);
  if (!reading_.has_ended(handed.gradient))
    reading_.wrong("does not wait for the gradient that comes from rank {}", way->first);
}

void MoveBook::end() {
  for (int unit = 0; unit < static_cast<int>(reading_.outline.units.size()); ++unit) {
    const auto way = way_of(reading_.outline, unit);
    if (!way || (way->first != reading_.rank && way->second != reading_.rank)) continue;
    if (!handed_[unit].state.exists())
      reading_.missing("the state of unit {} never goes from rank {} to rank {}, or not all of it", unit,
                       way->first, way->second);
    if (!handed_[unit].gradient.exists())
      reading_.missing("the gradient of unit {} never goes from rank {} to rank {}, or not all of it", unit,
                       way->first, way->second);
  }
}

}  // namespace mindpipe
