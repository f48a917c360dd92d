#include "program/check/check_fields.h"

#include <map>

#include "program/swapped_blocks.h"

namespace mindpipe {
namespace {

bool has_place(const Action& action, ListOf of, const Outline& outline) {
  const bool only_trains = traits_of(action.kind).steps == ActionTraits::training ||
                           action.payload == Payload::unit_gradient || is_move(action);
  if (!outline.training && only_trains) return false;
  if (copies_segment(action)) return of == ListOf::step && swaps_blocks(outline);
  if (is_copy(action)) return of == ListOf::step && outline.state_on_host;
  if (of != ListOf::subnets) return !is_move(action) || outline.moves_blocks();
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::update:
    case ActionKind::send:
    case ActionKind::receive:
    case ActionKind::reduce:
      return true;
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::gather:
    case ActionKind::sum_scalar:
    case ActionKind::fetch:
    case ActionKind::evict:
    case ActionKind::stash:
    case ActionKind::unstash:
      return false;
  }
  return false;
}

class FieldCheck {
 public:
  FieldCheck(Reading& reading, const Action& action, int index)
      : outline_(reading.outline), reading_(reading), action_(action), index_(index) {}

  void run() {
    if (!has_place(action_, reading_.of, outline_)) {
      const char* list = !outline_.training               ? "an evaluation"
                         : reading_.of == ListOf::subnets ? "a supernet's program"
                                                          : "a step";
      wrong("has no place in {}", list);
    }
    place();
    if (!has_its_owner()) wrong("is the work of a {}", name_of(action_.owner.of));
    if (is_pass(action_) || copies_segment(action_)) pass();
    if (copies_segment(action_)) segment();
    blocks();
    unused();
    if (names_unit(action_) || is_step_update()) unit(action_.unit);
    for (const int one : action_.units) unit(one);
    if (is_move(action_) && action_.units.empty()) wrong("moves no unit");
    for (const int earlier : action_.after)
      if (earlier >= index_ || reading_.place_of(earlier) < 0)
        wrong("waits for action {}, which is not an earlier one", reading_.place_of(earlier));
  }

 private:
  void place() {
    const int blocks = outline_.all_blocks(), ranks = outline_.ranks();
    if (action_.first < 0 || action_.last < action_.first || action_.last > blocks)
      wrong("blocks [{}, {}) are not in the model of {} blocks", action_.first, action_.last, blocks);
    if (action_.owner.number < 0) wrong("there is no number {} before the first", action_.owner.number);
    if (is_message(action_) && (action_.peer < 0 || action_.peer >= ranks || action_.peer == reading_.rank))
      wrong("there is no other rank {} to talk to ({} ranks)", action_.peer, ranks);
    if (is_message(action_) == (action_.payload == Payload::none))
      wrong("has the payload {}", name_of(action_.payload));
    if (crosses_cut(action_) && action_.parts != 1) wrong("is in {} parts, but goes as one", action_.parts);
    if (action_.parts < 1 || action_.part < 0 || action_.part >= action_.parts)
      wrong("there is no part {} of {}", action_.part + 1, action_.parts);
    const auto* collective = shape_of<CollectiveTraits>(action_);
    const Members group = collective == nullptr ? Members::none : collective->members;
    if (action_.group != group) wrong("is for group {}, not {}", action_.group, group);
    if (!is_message(action_) && action_.queue != traits_of(action_.kind).queue)
      wrong("is in queue {}, not {}", action_.queue, traits_of(action_.kind).queue);
  }

  /// A supernet's windows own what is done to units that all subnets share.
  bool has_its_owner() const {
    const Owner::Of of = action_.owner.of;
    if (reading_.of == ListOf::step) return of == Owner::step || (of == Owner::batch && !outline_.training);
    if (reading_.of == ListOf::forwards) return of == Owner::batch;
    if (is_move(action_)) return of == Owner::subnet || of == Owner::drain;
    const bool is_known = action_.unit >= 0 && action_.unit < std::ssize(outline_.units);
    const bool is_shared = names_unit(action_) && is_known && outline_.units[action_.unit].shared;
    return of == (is_shared ? Owner::window : Owner::subnet);
  }

  void pass() {
    const int of_shard = outline_.micro_batches_of_shard();
    if (action_.micro_batch < 0 || action_.micro_batch >= outline_.micro_batches)
      wrong("there are {} micro-batches", outline_.micro_batches);
    else if (action_.shard != action_.micro_batch / of_shard)
      wrong("micro-batch {} belongs to shard {}, not {}", action_.micro_batch, action_.micro_batch / of_shard,
            action_.shard);
    if (action_.chunk < 0 || action_.chunk >= outline_.all_chunks() ||
        reading_.rank_of(action_.chunk) != reading_.rank)
      wrong("chunk {} does not live here", action_.chunk);
  }

  void segment() {
    const bool is_block = action_.first >= 0 && action_.first < outline_.all_blocks();
    if (!is_block || action_.last != action_.first + 1 || !is_swapped(outline_, action_.first) ||
        outline_.chunk_of(action_.first) != action_.chunk)
      wrong("copies a segment, but of no swapped block of chunk {}", action_.chunk);
    if (action_.segment < 0 || action_.host < 0) wrong("names no slot, or no place on the host");
  }

  bool is_step_update() const { return action_.kind == ActionKind::update && reading_.of != ListOf::subnets; }

  /// A pass runs blocks, a sum is of one block's gradient, and of what else there is only a subnet's update
  /// is of blocks.
  void blocks() {
    const int count = action_.last - action_.first;
    const bool is_sum = action_.kind == ActionKind::reduce;
    const bool has_cut = is_message(action_) && !is_move(action_);
    if (copies_segment(action_)) {
      return;
    } else if (is_pass(action_)) {
      if (count == 0) wrong("runs no block");
    } else if (is_sum && count != 1) {
      wrong("sums the gradient of {} blocks, not of one", count);
    } else if (!is_sum && count != 0 && (is_step_update() || action_.kind != ActionKind::update)) {
      wrong("names the blocks [{}, {}), but is of none", action_.first, action_.last);
    } else if (count == 0 && !has_cut && action_.first != 0) {
      wrong("names block {}, but is of none", action_.first);
    }
  }

  /// Fields that the kind does not use say so.
  void unused() {
    const bool is_step = reading_.of != ListOf::subnets;
    const bool goes = is_forward(action_) || is_backward(action_), crosses = crosses_cut(action_);
    const bool is_sum = action_.kind == ActionKind::reduce, copies = copies_segment(action_);
    const bool swaps = swaps_blocks(outline_) && outline_.training;
    const bool of_slab = is_step ? is_sum && outline_.sharded_gradients : uses_slab_of_subnet();
    const struct {
      const char* name;
      int number;
      bool is_used;
    } fields[] = {
        {"unit", action_.unit, names_unit(action_) || is_step_update()},
        {"peer", action_.peer, is_message(action_)},
        {"micro-batch", action_.micro_batch, is_pass(action_) || crosses || copies},
        {"arena", action_.tape, is_pass(action_) || copies || (crosses && !sends(action_) && !is_step)},
        {"arena of what is put off", action_.waiting, is_half(action_)},
        {"buffer to read", action_.from_buffer, (goes && is_step) || (crosses && sends(action_))},
        {"buffer to write", action_.to_buffer, goes || (crosses && !sends(action_) && is_step)},
        {"gradient slab", action_.slab, of_slab},
        {"place apart", action_.apart, of_slab && is_sum && is_step},
        {"slot", action_.segment, (goes && swaps) || copies},
        {"slot to fill", action_.to_segment, is_forward(action_) && swaps},
        {"place on the host", action_.host, copies},
    };
    for (const auto& [name, number, is_used] : fields)
      if (!is_used && number != Action::none) wrong("names {} {}, but has no use for it", name, number);
    if (action_.fold && !adds_to_gradients(action_)) wrong("folds gradients, but adds to none");
    if (!is_move(action_) && !action_.units.empty()) wrong("names units, but moves none");
  }

  /// What all subnets share has accumulators of its own.
  bool uses_slab_of_subnet() const {
    if (is_backward(action_)) return true;
    const bool is_known = action_.unit >= 0 && action_.unit < std::ssize(outline_.units);
    if (action_.kind == ActionKind::reduce) return is_known && !outline_.units[action_.unit].shared;
    return action_.kind == ActionKind::update && !names_unit(action_);
  }

  void unit(int number) {
    const int units = static_cast<int>(outline_.units.size());
    if (number < 0 || number >= units) wrong("there is no unit {} ({} units)", number, units);
  }

  template <class... Parts>
  void wrong(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    reading_.wrong_at(reading_.place_of(index_), sentence, std::forward<Parts>(parts)...);
  }

  const Outline& outline_;
  Reading& reading_;
  const Action& action_;
  int index_;
};

/// All parts of a sum move this rank's share to one place, or none does; each place apart has one use's.
void check_places_apart(Reading& reading, std::span<const Action> stretch) {
  std::map<UnitUse, int> place_of;
  std::map<int, UnitUse> use_in;
  for (int index = 0; index < static_cast<int>(stretch.size()); ++index) {
    const Action& action = stretch[index];
    if (action.kind != ActionKind::reduce) continue;
    const UnitUse use{action.unit, action.first};
    const int place = place_of.try_emplace(use, action.apart).first->second;
    if (place != action.apart)
      reading.wrong_at(reading.place_of(index), "names place apart {}, the parts before it {}", action.apart,
                       place);
    if (action.apart < 0) continue;
    const UnitUse& there = use_in.try_emplace(action.apart, use).first->second;
    if (there != use)
      reading.wrong_at(reading.place_of(index),
                       "names place apart {}, which has the share of unit {} in block {}", action.apart,
                       there.unit, there.block);
  }
}

}  // namespace

void check_fields(Reading& reading, std::span<const Action> stretch) {
  for (int index = 0; index < static_cast<int>(stretch.size()); ++index)
    FieldCheck(reading, stretch[index], index).run();
  if (reading.of == ListOf::step && reading.outline.sharded_gradients) check_places_apart(reading, stretch);
}

}  // namespace mindpipe
