#include "runtime/actions.h"

#include <array>

#include "core/text.h"
#include "program/moving_step.h"
#include "program/swapped_blocks.h"
#include "trace/kept_actions.h"

namespace mindpipe {
namespace {

constexpr int channel_of(Payload payload) { return static_cast<int>(payload); }

/// Says which versions of its units a pass or an update finds on this rank.
void see(const Script& script, const RankState& state, const Action& action) {
  KeptActions* const kept = script.feed->kept();
  if (kept == nullptr || !kept->keeps()) return;
  Stage& stage = state.stage;
  if (names_unit(action))
    return kept->see({{action.unit, state.residency.values().version(action.unit)}}, {});
  std::vector<UnitVersion> units, shared;
  for (const UnitUse& use : state.residency.readers().uses(action.owner.number, action.first, action.last))
    units.push_back({use.unit, state.residency.values().version(use.unit)});
  for (int block = action.first; block < action.last && is_pass(action); ++block)
    for (const int unit : stage.model().blocks()[block].units)
      if (stage.model().is_shared(unit))
        shared.push_back({unit, state.residency.values().version_read(action.owner.number, unit)});
  kept->see(std::move(units), std::move(shared));
}

/// Makes sure that a forward finds the values of its blocks whole.
void require_whole(const RankState& state, const Action& forward) {
  for (int block = forward.first; block < forward.last; ++block)
    for (const int unit : state.stage.model().blocks()[block].units) state.residency.whole().require(unit);
}

/// At the end of a data shard the gradients that a backward has completed go to the binary counter.
void fold(const RankState& state, const Action& action, std::span<const UnitUse> uses) {
  for (const UnitUse& use : uses)
    if (action.fold) state.updates.folds().fold(use, action.shard, pass_of(action)->makes);
}

/// A device's queue has a copy whole. An imitated device's is made at once, and lasts as long as on paper.
bool copies_at_once(const Script& script, const RankState& state) {
  return script.device_times || state.stage.context().backend.memory().kind() != Memory::Kind::host;
}

}  // namespace

/// Whose part is missing is said in ranks of the job, so no other ranks stand here.
std::string described(const Script& script, const Action& action) {
  if (!script.trains()) {
    const std::string what{is_message(action) ? name_of(action.payload) : name_of(action.kind)};
    return fmt::format("{} of micro-batch {} of batch {} in line", what, action.micro_batch,
                       action.owner.number + 1);
  }
  if (is_move(action) && script.outline.moves_blocks()) {
    const auto [from, to] = way_of(script.outline, action.units.front()).value();
    return fmt::format("the state of unit{} {}, which move{} from stage {} to stage {}",
                       action.units.size() == 1 ? "" : "s", joined(action.units),
                       action.units.size() == 1 ? "s" : "", from, to);
  }
  if (is_move(action))
    return fmt::format("the state of {} unit{}{}", action.units.size(), action.units.size() == 1 ? "" : "s",
                       of_owner(action));
  if (action.payload == Payload::unit_gradient)
    return fmt::format("the gradient of unit {} in block {}{}", action.unit, action.first, of_owner(action));
  if (!is_message(action)) return to_string(action);
  return fmt::format("{} of micro-batch {}{}", name_of(action.payload), action.micro_batch, of_owner(action));
}

Actions::Actions(const RankState& state, Wires wires, const WorkMemory& memory)
    : state_(state), carriers_(wires, state.stage.context().backend) {
  take_rooms(memory);
  if (memory.subnets) subnets_.emplace(state.stage, *memory.subnets, scratch_);
}

void Actions::take_rooms(const WorkMemory& memory) {
  Memory& all = state_.stage.context().backend.memory();
  leave_rooms();
  if (scratch_.size() != aligned(memory.scratch)) {
    scratch_ = Arena();
    scratch_ = Arena(all, MemoryClass::workspace, memory.scratch);
  }
  passes_.emplace(state_.stage, memory.passes, scratch_);
}

Request Actions::start(Script& script, const Action& action, const StepInput& input) {
  GradientUpdates& updates = state_.updates;
  switch (action.kind) {
    case ActionKind::forward:
      forward(script, action, input);
      return {};
    case ActionKind::backward:
    case ActionKind::backward_input:
      backward(script, action, input);
      return {};
    case ActionKind::backward_weight:
      backward_weight(script, action);
      return {};
    case ActionKind::update:
      update(script, action, input);
      return {};
    case ActionKind::sum_scalar: {
      const Tensor losses = state_.stage.has_head() ? passes_->losses_of(action.owner.number) : Tensor{};
      const std::int64_t valid = updates.decide_step(losses, input.valid);
      const Tensor* measured = updates.measured();
      const std::array found{updates.decisions().of(all_units), measured != nullptr ? *measured : Tensor{}};
      script.feed->found(action, input.step, valid, std::span(found).first(measured != nullptr ? 2 : 1));
      return {};
    }
    case ActionKind::send:
      return carriers_.send(action.peer, channel_of(action.payload), message_of(script, action),
                            class_of(action));
    case ActionKind::receive:
      return carriers_.receive(action.peer, channel_of(action.payload), message_of(script, action));
    case ActionKind::reduce:
      return {Request::reductions, reduce(action)};
    case ActionKind::gather:
      return {Request::reductions,
              updates.sums().gather(carriers_.reductions(), action.unit, action.part, action.parts)};
    case ActionKind::fetch:
      return carriers_.copy(
          action.kind,
          state_.residency.shares().fetched().ways_of_fetch(state_.residency.shares().of(action.unit)),
          copies_at_once(script, state_));
    case ActionKind::evict:
      return carriers_.copy(action.kind,
                            FetchedStates::ways_of_evict(state_.residency.shares().of(action.unit)),
                            copies_at_once(script, state_));
    case ActionKind::stash:
    case ActionKind::unstash:
      return carriers_.copy(action.kind, std::array{rooms_of(script).segment_way(action)},
                            copies_at_once(script, state_));
  }
  fail(Exit::internal, "an action of no kind");
}

void Actions::progress() {
  carriers_.progress();
  for (Feed* feed : feeds_) feed->progress();
}

std::int64_t Actions::bytes_of(const Action& action) const {
  const GradientSums& sums = state_.updates.sums();
  switch (action.kind) {
    case ActionKind::reduce:
      return sums.sent_by_reduce({action.unit, action.first}, action.part, action.parts);
    case ActionKind::gather:
      return sums.sent_by_gather(action.unit, action.part, action.parts);
    case ActionKind::send:
    case ActionKind::receive:
      if (action.payload == Payload::unit_gradient)
        return static_cast<std::int64_t>(
            sums.exchanged_part({action.unit, action.first}, action.part, action.parts).bytes());
      return action.bytes;
    case ActionKind::fetch:
    case ActionKind::evict:
      return static_cast<std::int64_t>(state_.residency.shares().of(action.unit).bytes());
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::update:
    case ActionKind::sum_scalar:
    case ActionKind::stash:
    case ActionKind::unstash:
      return action.bytes;
  }
  return action.bytes;
}

Tensor Actions::message_of(const Script& script, const Action& action) {
  if (is_move(action)) return state_.residency.moves().part_of(action);
  if (action.payload != Payload::unit_gradient) return rooms_of(script).message(action);
  if (state_.windows != nullptr) return state_.windows->part(action);
  return state_.updates.sums().exchanged_part({action.unit, action.first}, action.part, action.parts);
}

Reductions::Request Actions::reduce(const Action& action) {
  if (state_.windows != nullptr && state_.stage.model().is_shared(action.unit))
    return state_.windows->reduce(carriers_.reductions(), action.owner.number, action.unit, action.part,
                                  action.parts);
  const UnitUse use{action.unit, action.first};
  const auto begin = [&] {
    return state_.updates.sums().reduce(carriers_.reductions(), use, action.part, action.parts,
                                        action.apart >= 0);
  };
  if (action.slab < 0) return begin();
  // A backward of another subnet may be under way that adds to the unit's gradient in a slab of its own.
  const GradientSlabs::Bound bound = state_.residency.gradients().bound(use, action.slab);
  return begin();
}

void Actions::forward(Script& script, const Action& action, const StepInput& given) {
  const bool trains = script.trains();
  // A step does not wait for what comes to it before its end.
  const bool begins_subnet = trains && state_.windows != nullptr && action.micro_batch == 0;
  const std::vector<int>& cut = script.outline.first_block;
  const bool in_pieces = trains && swaps_blocks(script.outline);
  const bool goes_on = in_pieces && action.first != cut[action.chunk];
  const StepInput& input = !trains || begins_subnet ? script.feed->bring(action) : given;
  require_whole(state_, action);
  if (trains) {
    if (begins_subnet) state_.windows->count(action.owner.number, input.valid);
    state_.residency.values().bind(action.owner.number);
    see(script, state_, action);
    if (begins_subnet)
      for (const UnitArrivals::Arrival& one : state_.residency.arrivals().take(action.owner.number))
        script.feed->came(one);
    state_.residency.arrivals().require_due(action.owner.number, action.first, action.last);
  }
  PassRooms& rooms = rooms_of(script);
  PassRooms::Slot& slot = rooms.slot(action.tape);
  if (!goes_on) slot.first = action.first;
  slot.last = in_pieces ? cut[action.chunk + 1] : action.last;
  Tape& tape = *slot.tape;
  if (!goes_on) tape.clear();
  rooms.open_room(action, trains);
  tape.mode = trains ? Tape::Mode::train : input.mode;
  tape.hits = trains ? Tensor{} : state_.updates.losses().hits();
  rooms.set_micro_batch(tape, input, action.micro_batch, action.owner.number);
  Boundary in = goes_on ? slot.between : rooms.entering(action);
  if (trains && !goes_on &&
      action.from_buffer >= 0) {  // it moves on to the tape: its buffer is free for the next message
    const Boundary arrived = std::exchange(in, {});
    in.activation = tape.output(arrived.activation.shape, arrived.activation.dtype);
    if (arrived.encoder_output)
      in.encoder_output = tape.output_for_all(arrived.encoder_output.shape, arrived.encoder_output.dtype);
    rooms.copy(arrived, in);
  }
  const Boundary out = slot.between = state_.stage.forward(action.first, action.last, in, tape);
  if (action.to_buffer >= 0) rooms.copy(out, rooms.buffer(action.to_buffer, action.last, false));
  if (trains) return;
  tape.clear();
  const bool at_end = action.last == static_cast<int>(state_.stage.model().blocks().size()) &&
                      action.micro_batch + 1 == state_.stage.layout().micro_batches();
  const Tensor losses = rooms.losses_of(action.owner.number);
  if (at_end) script.feed->found(action, action.owner.number, input.valid, {&losses, 1});
}

/// The whole of a backward, or a piece of it: the first one begins where the forward ended.
void Actions::backward(Script& script, const Action& action, const StepInput& input) {
  PassRooms& rooms = rooms_of(script);
  PassRooms::Slot& slot = rooms.slot(action.tape);
  Tape& tape = *slot.tape;
  see(script, state_, action);
  state_.residency.values().bind(action.owner.number);
  if (action.last == slot.last) {
    if (action.slab >= 0)
      state_.residency.gradients().bind(
          state_.residency.readers().uses(action.owner.number, slot.first, slot.last), action.slab);
    slot.scratch_mark = scratch_.mark();
    tape.weight_gradients =
        makes_gradients(action) ? Tape::WeightGradients::now : Tape::WeightGradients::later;
    rooms.set_micro_batch(tape, input, action.micro_batch, action.owner.number);
    slot.between = rooms.entering(action);
  }
  const std::span<const UnitUse> uses =
      state_.residency.readers().uses(action.owner.number, action.first, action.last);
  if (action.clears)
    for (const UnitUse& use : uses) state_.updates.folds().clear(use);
  rooms.open_room(action, true);
  slot.between = state_.stage.backward(action.first, action.last, slot.between, tape);
  if (action.segment >= 0 && makes_gradients(action)) rooms.close_segment(action);
  if (action.first == slot.first) {
    MP_CHECK(tape.saved() == 0, "{} left {} tensors on its tape", to_string(action), tape.saved());
    if (action.to_buffer >= 0) rooms.copy(slot.between, rooms.buffer(action.to_buffer, action.first, true));
    scratch_.release(slot.scratch_mark);
    if (makes_gradients(action)) rooms.close_room(action);
  }
  if (state_.windows != nullptr) state_.windows->add(action.owner.number, action.first, action.last);
  fold(state_, action, uses);
}

void Actions::backward_weight(const Script& script, const Action& action) {
  PassRooms& rooms = rooms_of(script);
  PassRooms::Slot& slot = rooms.slot(action.tape);
  const std::span<const UnitUse> uses =
      state_.residency.readers().uses(action.owner.number, action.first, action.last);
  std::vector<const Unit*> units;
  for (const UnitUse& use : uses) units.push_back(&state_.stage.unit(use.unit));
  slot.tape->run_weight_gradients(units);
  if (action.first == slot.first) rooms.close_room(action);
  fold(state_, action, uses);
}

void Actions::update(Script& script, const Action& action, const StepInput& input) {
  see(script, state_, action);
  if (!names_unit(action)) return update_subnet(script, action, input);
  if (state_.windows == nullptr) return state_.updates.update(action.unit, input.rate);
  state_.windows->count_other_lanes(action.owner.number,
                                    [&](std::int64_t id) { return script.feed->targets_of(id); });
  state_.windows->update(action.owner.number, action.unit);
  const Tensor decision = state_.updates.decisions().of(action.unit);
  script.feed->found(action, state_.windows->last_of(action.owner.number), 0, {&decision, 1});
}

void Actions::update_subnet(const Script& script, const Action& action, const StepInput& input) {
  GradientUpdates& updates = state_.updates;
  const std::span<const UnitUse> uses =
      state_.residency.readers().uses(action.owner.number, action.first, action.last);
  state_.residency.arrivals().require_due(action.owner.number, action.first, action.last);
  state_.residency.gradients().bind(uses, action.slab);
  if (!uses.empty()) updates.decide(uses, input.valid);
  std::vector<Tensor> found;
  for (const UnitUse& use : uses) {
    updates.update(use.unit, input.rate);
    found.push_back(updates.decisions().of(use.unit));
  }
  if (state_.stage.has_head()) {
    found.push_back(updates.decisions().loss());
    updates.losses().sum_over_data(rooms_of(script).losses_of(action.owner.number), found.back());
  }
  script.feed->found(action, action.owner.number, input.valid, found);
}

}  // namespace mindpipe
