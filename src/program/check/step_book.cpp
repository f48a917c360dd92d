#include "program/check/step_book.h"

#include <algorithm>

#include "program/moving_step.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

std::string text_of(const UnitUse& use) { return fmt::format("unit {} in block {}", use.unit, use.block); }

}  // namespace

StepBook::StepBook(Reading& reading, std::map<UnitUse, int> slabs)
    : reading_(reading), slab_of_(std::move(slabs)) {
  for (int block = 0; block < reading.outline.all_blocks(); ++block)
    uses_of_block_.push_back(reading.outline.uses_in(block, block + 1));
}

void StepBook::see() {
  const Action& action = reading_.action();
  if (is_pass(action) && !scalars_.empty()) reading_.wrong("comes behind the sum of scalars");
  if (adds_to_gradients(action))
    for (int block = action.first; block < action.last; ++block)
      for (const UnitUse& use : uses_of_block_[block]) adds(use);
  if (action.payload == Payload::unit_gradient) return exchange();
  switch (action.kind) {
    case ActionKind::reduce:
      return reduce();
    case ActionKind::sum_scalar:
      return sum_scalar();
    case ActionKind::update:
      return update();
    case ActionKind::gather:
      return gather();
    case ActionKind::fetch:
      return fetch();
    case ActionKind::evict:
      return evict();
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::send:
    case ActionKind::receive:
    case ActionKind::stash:
    case ActionKind::unstash:
      return;
  }
}

void StepBook::adds(const UnitUse& use) {
  if (const auto slab = slab_of_.find(use); slab != slab_of_.end()) enters_slab(use, slab->second);
  Use& path = uses_[use];
  path.is_begun = true;
  if (!makes_gradients(reading_.action())) return;
  path.last_backward = reading_.here();
  path.made = reading_.action().micro_batch + 1;
}

void StepBook::enters_slab(const UnitUse& use, int number) {
  Slab& slab = slabs_[number];
  if (slab.use == use) return;
  const bool is_taken = slab.use.unit >= 0;
  const Use& before = uses_[slab.use];
  if (uses_[use].is_begun)
    reading_.wrong("adds to the gradient of {} in slab {}, which {} has taken over", text_of(use), number,
                   text_of(slab.use));
  else if (is_taken && !(before.is_whole && reading_.has_ended(before.reduced)))
    reading_.wrong("writes gradient slab {} while the sum of {} over data may still read it", number,
                   text_of(slab.use));
  else if (is_taken && !slab.moves_out)
    reading_.wrong("writes gradient slab {}, where this rank's share of {} stays until its update", number,
                   text_of(slab.use));
  slab = {use};
}

void StepBook::reduce() {
  const Action& action = reading_.action();
  const UnitUse use{action.unit, action.first};
  Use& path = uses_[use];
  if (path.is_whole) reading_.wrong("runs a second time");
  if (path.made < reading_.outline.micro_batches)
    reading_.wrong("comes before the block's last backward (that of micro-batch {} is next)", path.made);
  else if (!reading_.has_ended(path.last_backward)) reading_.wrong("does not wait for the block's backward");
  path.reduced = reading_.here();
  path.is_whole = action.part + 1 == action.parts;
  if (reading_.outline.sharded_gradients) reduces_slab(use);
}

void StepBook::reduces_slab(const UnitUse& use) {
  const Action& action = reading_.action();
  if (action.slab < 0) return reading_.wrong("names no gradient slab");
  if (action.slab != slab_of_.at(use)) reading_.wrong("names another gradient slab than the parts before it");
  Slab& slab = slabs_[action.slab];
  if (slab.use != use)
    return reading_.wrong("finds the gradient of {} in slab {}", text_of(slab.use), action.slab);
  slab.moves_out = action.apart >= 0;
}

void StepBook::exchange() {
  const Action& message = reading_.action();
  Use& path = uses_[{message.unit, message.first}];
  if (sends(message) && !(path.is_whole && reading_.has_ended(path.reduced)))
    reading_.wrong("does not wait for its sum over data");
  if (path.exchanged.count(message.peer)) reading_.wrong("runs a second time");
  if (message.part + 1 == message.parts) path.exchanged[message.peer] = reading_.here();
}

void StepBook::sum_scalar() {
  scalars_.push_back(reading_.here());
  for (const int unit : reading_.outline.units_of_rank(reading_.rank))
    for (const int block : reading_.outline.units[unit].blocks) require_sum({unit, block});
}

/// The gradient of a use is summed over data where it is made, and every other home of the unit has it.
void StepBook::require_sum(const UnitUse& use) {
  const Outline& outline = reading_.outline;
  const int owner = outline.rank_of_block(use.block);
  const Use& path = uses_[use];
  const bool is_here = owner == reading_.rank;
  if (is_here && !(path.is_whole && reading_.has_ended(path.reduced)))
    reading_.wrong("does not wait for the sum of {}", text_of(use));
  for (const int home : outline.homes_of(use.unit)) {
    const int peer = is_here ? home : owner;
    if (home == owner || (!is_here && home != reading_.rank)) continue;
    const auto message = path.exchanged.find(peer);
    if (message == path.exchanged.end() || !reading_.has_ended(message->second))
      reading_.wrong("does not wait for the gradient of {} that goes {} rank {}", text_of(use),
                     is_here ? "to" : "from", peer);
  }
}

void StepBook::update() {
  const Action& action = reading_.action();
  Unit& unit = units_[action.unit];
  if (unit.updated.exists()) reading_.wrong("is updated a second time");
  if (const auto way = way_of(reading_.outline, action.unit); way && way->first == reading_.rank)
    reading_.wrong("unit {} has left for rank {}, which updates it", action.unit, way->second);
  else if (!way && !is_home(action.unit)) reading_.wrong("unit {} does not live here", action.unit);
  if (scalars_.empty() || !reading_.has_ended(scalars_.back()))
    reading_.wrong("does not wait for the scalars");
  if (is_fetched(reading_.outline, action.unit) && !reading_.has_ended(unit.fetched))
    reading_.wrong("does not wait for the unit's state, which is on the host");
  unit.updated = reading_.here();
}

void StepBook::gather() {
  const Action& action = reading_.action();
  Unit& unit = units_[action.unit];
  if (unit.updated.exists()) reading_.wrong("comes behind the update, whose values the next step gathers");
  if (unit.is_gathered) reading_.wrong("runs a second time");
  unit.is_gathered = action.part + 1 == action.parts;
}

/// The slots of the device are taken in turn.
void StepBook::fetch() {
  const int number = reading_.action().unit, turn = static_cast<int>(fetched_.size());
  Unit& unit = units_[number];
  if (!is_home(number)) reading_.wrong("unit {} does not live here", number);
  if (unit.fetched.exists()) reading_.wrong("runs a second time");
  if (turn >= state_slots) {
    const int before = fetched_[turn - state_slots];
    if (!reading_.has_ended(units_[before].evicted))
      reading_.wrong("takes the slot of unit {}, whose state may still be there", before);
  }
  fetched_.push_back(number);
  unit.fetched = reading_.here();
}

void StepBook::evict() {
  Unit& unit = units_[reading_.action().unit];
  if (unit.evicted.exists()) reading_.wrong("runs a second time");
  if (!reading_.has_ended(unit.updated)) reading_.wrong("does not wait for the update");
  unit.evicted = reading_.here();
}

bool StepBook::is_home(int unit) const {
  const std::vector<int> homes = reading_.outline.homes_of(unit);
  return std::binary_search(homes.begin(), homes.end(), reading_.rank);
}

void StepBook::end() {
  if (scalars_.size() != 1)
    return reading_.missing("{} sums of scalars in a step (there is one)", scalars_.size());
  const Outline& outline = reading_.outline;
  for (const int unit : outline.units_of_rank(reading_.rank)) {
    for (const int block : outline.units[unit].blocks) {
      const bool is_here = outline.rank_of_block(block) == reading_.rank;
      if (is_here && !uses_[{unit, block}].is_whole)
        reading_.missing("the gradient of {} is never summed over data, or not all of it",
                         text_of({unit, block}));
    }
    if (outline.sharded_optimizer && !units_[unit].is_gathered)
      reading_.missing("the values of unit {} are never gathered, or not all of them", unit);
  }
  for (const auto& [number, slab] : slabs_)
    if (slab.moves_out)
      reading_.missing("the share of {} moves out of gradient slab {}, which nobody takes over",
                       text_of(slab.use), number);
  for (const int unit : units_updated_by(outline, reading_.rank))
    if (!units_[unit].updated.exists()) reading_.missing("unit {} is never updated", unit);
    else if (is_fetched(outline, unit) && !units_[unit].evicted.exists())
      reading_.missing("the state of unit {} never goes back to the host", unit);
}

}  // namespace mindpipe
