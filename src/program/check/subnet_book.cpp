#include "program/check/subnet_book.h"

#include <algorithm>

#include "program/choice_parts.h"

namespace mindpipe {

SubnetBook::SubnetBook(Reading& reading, const SubnetRules& rules, std::int64_t first)
    : reading_(reading),
      rules_(rules),
      stage_(reading.outline.stage_of_rank(reading.rank)),
      moves_(reading.outline.has_moves()),
      held_(reading.outline.units.size()),
      first_moving_(first),
      updated_(first) {
  leave_home();
}

/// Behind a drain, and at the beginning, units are at home.
void SubnetBook::leave_home() {
  const std::vector<int> home = reading_.outline.units_of_rank(stage_);
  for (int unit = 0; unit < static_cast<int>(held_.size()); ++unit)
    if (!std::binary_search(home.begin(), home.end(), unit)) held_[unit].version = gone;
}

void SubnetBook::know(const Subnet& subnet, const std::vector<int>& cut) {
  const Outline& outline = reading_.outline;
  const bool is_here = subnet.id % outline.lanes == outline.lane_of_rank(reading_.rank);
  OpenSubnet* open = is_here ? &open_[subnet.id] : nullptr;
  if (is_here) {
    open->first = cut[stage_];
    open->last = cut[stage_ + 1];
  }
  std::vector<Use>& all = moving_.emplace_back();
  const int first = moves_ ? 0 : cut[stage_], last = moves_ ? outline.all_blocks() : cut[stage_ + 1];
  for (int block = first; block < last; ++block)
    for_candidates(outline, subnet.choice, block, [&](int candidate) {
      for (const int unit : outline.units_used[block][candidate]) {
        if (outline.units[unit].shared) continue;
        const Use use{unit, block, held_[unit].users++};
        if (moves_) all.push_back(use);
        if (is_here && block >= open->first && block < open->last) open->uses.push_back(use);
      }
    });
}

void SubnetBook::forget(std::int64_t oldest) {
  for (; first_moving_ < oldest && !moving_.empty(); ++first_moving_) moving_.pop_front();
}

/// The version of a unit that a subnet reads, which is on its way to it; gone: it reads none.
std::int64_t SubnetBook::version_for(std::int64_t subnet, int unit) const {
  const std::int64_t place = subnet - first_moving_;
  if (place < 0 || place >= static_cast<std::int64_t>(moving_.size())) return gone;
  for (const Use& use : moving_[place])
    if (use.unit == unit) return use.version;
  return gone;
}

SubnetBook::OpenSubnet* SubnetBook::known() {
  const auto found = open_.find(reading_.action().owner.number);
  if (found != open_.end()) return &found->second;
  reading_.wrong("its subnet has ended, or is not known");
  return nullptr;
}

void SubnetBook::see() {
  const Action& action = reading_.action();
  if (is_move(action)) return move();
  if (is_message(action)) return;
  OpenSubnet* const open = known();
  if (open == nullptr) return;
  if (is_pass(action)) pass(*open);
  if (is_backward(action)) backward(*open);
  if (action.kind == ActionKind::reduce) reduce(*open);
  if (action.kind == ActionKind::update) update(*open);
}

void SubnetBook::pass(OpenSubnet& open) {
  const Action& action = reading_.action();
  if (!is_forward(action)) return;
  if (rules_.order == SubnetOrder::causal) {
    require_versions(open);
    for (const ListEntry& arrival : open.arrived)
      if (!reading_.has_ended(arrival))
        reading_.wrong("does not wait for units ({})", reading_.text_of(arrival.place));
  } else if (const std::int64_t group = group_of_bulk(reading_.outline);
             rules_.order == SubnetOrder::bulk && updated_ < action.owner.number / group * group) {
    reading_.wrong("the group before has yet to be updated");
  }
}

/// All older users of a subnet's units have updated them, and their states are here.
void SubnetBook::require_versions(const OpenSubnet& open) {
  for (const Use& use : open.uses)
    if (const std::int64_t found = held_[use.unit].version; found == gone)
      reading_.wrong("unit {}, which it uses, is on another rank", use.unit);
    else if (found != use.version)
      reading_.wrong("finds version {} of unit {}, which {} older subnets use", found, use.unit, use.version);
}

void SubnetBook::backward(OpenSubnet& open) {
  const Action& action = reading_.action();
  if (open.slab < 0) {
    open.slab = action.slab;
    const auto [holder, is_free] = slabs_.try_emplace(action.slab, action.owner.number);
    if (action.slab < 0) reading_.wrong("names no gradient slab");
    else if (!is_free) reading_.wrong("slab {} holds gradients of subnet {}", action.slab, holder->second);
  } else if (open.slab != action.slab) {
    reading_.wrong("its gradients are in slab {}", open.slab);
  }
  if (action.first == open.first) ++open.backwards;
  for (Use& use : open.uses)
    if (action.micro_batch + 1 == reading_.outline.micro_batches && use.block >= action.first &&
        use.block < action.last)
      use.added = reading_.here();
}

void SubnetBook::reduce(OpenSubnet& open) {
  const Action& action = reading_.action();
  if (action.slab != open.slab) reading_.wrong("its gradients are in slab {}", open.slab);
  const auto use = std::find_if(open.uses.begin(), open.uses.end(),
                                [&](const Use& one) { return one.unit == action.unit; });
  if (use == open.uses.end()) return reading_.wrong("its subnet uses no unit {} here", action.unit);
  if (!reading_.has_ended(use->added)) reading_.wrong("does not wait for the last backward");
  if (use->summed.exists()) reading_.wrong("runs a second time");
  if (action.part + 1 == action.parts) use->summed = reading_.here();
}

void SubnetBook::update(OpenSubnet& open) {
  const Action& action = reading_.action();
  if (open.backwards < reading_.outline.micro_batches) reading_.wrong("comes before its last backward");
  if (action.slab != open.slab) reading_.wrong("its gradients are in slab {}", open.slab);
  if (action.first != open.first || action.last != open.last)
    reading_.wrong("its subnet has the blocks [{}, {}) here", open.first, open.last);
  if (rules_.order == SubnetOrder::causal) require_versions(open);
  for (const Use& use : open.uses) {
    held_[use.unit].version = use.version + 1;
    held_[use.unit].touched = reading_.here();
    if (reading_.outline.data > 1 && !reading_.has_ended(use.summed))
      reading_.wrong("does not wait for the sum of unit {}", use.unit);
  }
  slabs_.erase(open.slab);
  ++updated_;
  open_.erase(action.owner.number);
}

/// A move takes units in the version that their reader is due, once they have it, and brings them where
/// nobody is at the older state any more. Before a drain the newest states go home to all lanes, and stay
/// where they are.
void SubnetBook::move() {
  const Action& action = reading_.action();
  const bool goes_home = action.owner.of == Owner::drain, is_last = action.part + 1 == action.parts;
  for (const int unit : action.units) moves_unit(unit, goes_home, is_last);
  if (sends(action)) leaves(goes_home, is_last);
  if (goes_home || !is_last || sends(action)) return;
  const auto reader = open_.find(action.owner.number);
  if (reader == open_.end()) return reading_.wrong("its subnet does not run here");
  reader->second.arrived.push_back(reading_.here());
}

void SubnetBook::moves_unit(int unit, bool goes_home, bool is_last) {
  const Action& action = reading_.action();
  Held& held = held_[unit];
  const std::int64_t due = goes_home ? held.users : version_for(action.owner.number, unit);
  if (due == gone) return reading_.wrong("its subnet uses no unit {}", unit);
  if (held.touched.exists() && !reading_.has_ended(held.touched))
    reading_.wrong("does not wait for what was last done to unit {}", unit);
  if (sends(action) && held.version != due)
    reading_.wrong("takes version {} of unit {}{}, not {}", held.version, unit, goes_home ? " home" : "",
                   due);
  if (!sends(action) && held.version == due) reading_.wrong("brings unit {}, which is here", unit);
  if (!is_last) return;
  if (!sends(action)) held.version = due;
  else if (!goes_home) held = {gone, held.users, reading_.here()};
}

/// All moves of a rank leave by one link, one behind the other, and go home behind all that computes.
void SubnetBook::leaves(bool goes_home, bool is_last) {
  const bool begins = reading_.action().part == 0;
  if (begins && left_.exists() && !reading_.has_ended(left_))
    reading_.wrong("leaves while {} may still be on its way", reading_.text_of(left_.place));
  if (begins && goes_home && reading_.is_new(computed_) && !reading_.has_ended(computed_))
    reading_.wrong("goes home before {} has ended", reading_.text_of(computed_.place));
  if (is_last) left_ = reading_.here();
}

void SubnetBook::end() {
  for (const auto& [id, open] : open_) reading_.missing("subnet {} is not updated at a drain", id);
  if (!moves_) return;
  for (const int unit : reading_.outline.units_of_rank(stage_))
    if (!reading_.outline.units[unit].shared && held_[unit].version != held_[unit].users)
      reading_.missing("unit {} is not at home at a drain", unit);
  leave_home();
}

}  // namespace mindpipe
