#include "runtime/subnet_actions.h"

#include "comm/fault_points.h"
#include "optim/rate.h"

namespace mindpipe {
namespace {

Shape losses_in_flight(const Stage& stage, int inputs) {
  const Shape one = stage.losses_shape();
  return {inputs, one[0], one[1], one[2]};
}

}  // namespace

SubnetActions::SubnetActions(Stage& stage, GradientUpdates& updates, Groups groups, const Config& config,
                             const Outline& outline, const SubnetRooms& rooms, LateAnswers& answers,
                             Arena& scratch)
    : stage_(stage),
      updates_(updates),
      config_(config),
      pipeline_(groups.pipeline),
      decisions_(stage.context().backend, groups.tensor, updates.optimizers(), rooms.most_tensors),
      windows_(stage, updates, decisions_, groups, outline, config.supernet.window),
      moves_(stage, updates, decisions_, rooms.moves, rooms.move),
      is_causal_(order_of(config.schedule.kind) == SubnetOrder::causal),
      users_(stage.model().units().size(), 0),
      slots_(rooms.slots),
      answers_(answers),
      scratch_(scratch),
      kept_(config.trace.steps, config.supernet.window) {
  Backend& backend = stage.context().backend;
  Memory& memory = backend.memory();
  for (Slot& slot : slots_) {
    slot.kept = Arena(memory, MemoryClass::activations, rooms.tape);
    slot.arrived_gradient = Arena(memory, MemoryClass::boundary, rooms.gradient);
    slot.tape = std::make_unique<Tape>(backend, slot.kept, scratch);
  }
  for (const std::size_t bytes : {rooms.forwards, rooms.forwards, rooms.backwards, rooms.backwards})
    rings_.emplace_back(memory, MemoryClass::boundary, bytes);
  for (const int unit : stage.local_units())
    if (stage.model().is_shared(unit) && stage.unit(unit).flat_count() > 0 &&
        stage.layout().coord.supernet == 0 && stage.has_block(stage.model().blocks_of(unit).front()))
      counted_here_.push_back(unit);
  if (!stage.has_head()) return;
  const Shape losses = losses_in_flight(stage, rooms.inputs);
  losses_arena_ = Arena(memory, MemoryClass::boundary, bytes_for(losses, DType::f32));
  losses_ = losses_arena_.take(losses, DType::f32);
}

/// The tensors of what crosses the cut before block `cut`, from an arena's beginning on.
Boundary SubnetActions::take(Arena& arena, int cut, bool gradient) const {
  const Stage::Entering shapes = stage_.before(cut);
  const DType dtype = stage_.context().dtype;
  arena.release(0);
  Boundary b;
  b.activation = arena.take(shapes.activation, dtype);
  if (shapes.memory.rank > 0) b.encoder_output = arena.take(shapes.memory, gradient ? DType::f32 : dtype);
  return b;
}

Boundary SubnetActions::arrival(Slot& slot, int cut, bool gradient) {
  return take(gradient ? slot.arrived_gradient : slot.kept, cut, gradient);
}

Boundary SubnetActions::ring(int buffer, int cut, bool gradient) {
  return take(rings_[buffer], cut, gradient);
}

void SubnetActions::leave(const Boundary& from, const Boundary& to) {
  Backend& backend = stage_.context().backend;
  backend.copy(from.activation, to.activation);
  if (to.encoder_output) backend.copy(from.encoder_output, to.encoder_output);
}

void SubnetActions::begin(std::int64_t first) {
  windows_.begin(first);
  known_ = first;
  counted_ = windows_.window_of(first);
  due_.clear();
  for (int unit = 0; unit < static_cast<int>(users_.size()); ++unit)
    users_[unit] = stage_.counts_here(unit) ? stage_.unit(unit).version : 0;
  // What may run beside its home was brought home, and is an old version here.
  if (config_.supernet.cuts == SubnetCuts::own) pipeline_.sum_integers(users_);
}

void SubnetActions::know(const Subnet& subnet) {
  const Layout& layout = stage_.layout();
  known_ = subnet.id + 1;
  const bool is_here = subnet.id % layout.grid.supernet == layout.coord.supernet;
  const int blocks = static_cast<int>(stage_.model().blocks().size());
  for (const UnitUse& use : stage_.uses_of(subnet.choice.data(), 0, blocks)) {
    if (is_here) due_[subnet.id][use.unit] = users_[use.unit];
    ++users_[use.unit];
  }
}

/// How many older subnets use a unit; behind the last subnet that is known, all that do.
std::int64_t SubnetActions::due_version(std::int64_t subnet, int unit) const {
  const auto reader = due_.find(subnet);
  return reader == due_.end() ? users_[unit] : reader->second.at(unit);
}

/// Every older user of a unit has updated it, and its state is here; or the plan, or what carried it out, is
/// wrong.
void SubnetActions::require_version(std::int64_t subnet, int unit, std::int64_t found,
                                    std::int64_t due) const {
  MP_CHECK(
      found == due,
      "subnet {} finds version {} of unit {}, and {} older subnets use it: its order was not kept. This is a "
      "mistake of the program, or of the machine; a restart goes on from the last checkpoint",
      subnet, found, stage_.unit(unit).name(), due);
}

void SubnetActions::require_versions(const Action& action, const std::vector<UnitUse>& uses) const {
  if (!is_causal_ || !due_.contains(action.subnet)) return;
  for (const UnitUse& use : uses)
    require_version(action.subnet, use.unit, stage_.unit(use.unit).version,
                    due_version(action.subnet, use.unit));
}

/// The host may be ahead of the device: it counts on the version that is due, and asks for the one that came.
void SubnetActions::arrived(const Action& action) {
  moves_.arrived(action);
  if (action.part + 1 < action.parts) return;
  for (const int unit : action.units) stage_.unit(unit).version = due_version(action.subnet, unit);
  if (stage_.context().backend.memory().kind() == Memory::Kind::counted) return;
  std::vector<int>& units = arrivals_[action.subnet];
  units.insert(units.end(), action.units.begin(), action.units.end());
}

void SubnetActions::require_arrivals(std::int64_t subnet) {
  const auto arrived = arrivals_.extract(subnet);
  if (arrived.empty()) return;
  for (const int unit : arrived.mapped()) {
    const Tensor version = moves_.version_of(unit);
    answers_.ask({&version, 1},
                 [this, subnet, unit, due = due_version(subnet, unit)](std::span<const double> found) {
                   require_version(subnet, unit, static_cast<std::int64_t>(found[0]), due);
                 });
  }
}

Tensor SubnetActions::message_of(const Action& action) {
  if (is_move(action)) return moves_.part_of(action);
  if (action.payload == Payload::unit_gradient)
    return sends(action)
               ? windows_.part_to_send(action.subnet, action.unit, action.part, action.parts)
               : windows_.part_of_arrival(action.subnet, action.unit, action.peer, action.part, action.parts);
  const bool gradient = !travels_forward(action.payload);
  const Boundary b = sends(action) ? ring(action.from_buffer, action.first, gradient)
                                   : arrival(slots_[action.tape], action.first, gradient);
  const bool encoded =
      action.payload == Payload::encoder_output || action.payload == Payload::encoder_output_gradient;
  return encoded ? b.encoder_output : b.activation;
}

void SubnetActions::prepare(Tape& tape, const Action& action, const StepInput& input) {
  const Layout& layout = stage_.layout();
  tape.batch = {input.fields.part(action.micro_batch), layout.samples,
                layout.first_sample(action.micro_batch), input.step, input.choice};
  tape.loss_factor = 1.0 / static_cast<double>(stage_.targets_of_step());
  if (losses_) tape.losses = losses_of(action.subnet).at(action.micro_batch);
  windows_.bind(action.subnet);
}

/// Says which versions of its units a pass or an update finds on this rank.
void SubnetActions::see(const Action& action, const StepInput& input) {
  if (!kept_.keeps()) return;
  if (names_unit(action)) return kept_.see({{action.unit, stage_.unit(action.unit).version}}, {});
  std::vector<UnitVersion> units, shared;
  for (const UnitUse& use : stage_.uses_of(input.choice, action.first, action.last))
    units.push_back({use.unit, stage_.unit(use.unit).version});
  for (int block = action.first; block < action.last && is_pass(action); ++block)
    for (const int unit : stage_.model().blocks()[block].units)
      if (stage_.model().is_shared(unit))
        shared.push_back({unit, windows_.version_read(action.subnet, unit)});
  kept_.see(std::move(units), std::move(shared));
}

/// What arrived lies at the beginning of the slot's tape, where it is kept as if it had been made here.
void SubnetActions::forward(const Action& action, const StepInput& input) {
  if (action.micro_batch == 0) {
    if (load_) load_(action.subnet);
    windows_.count(action.subnet, input.valid);
  }
  see(action, input);
  if (action.micro_batch == 0) require_arrivals(action.subnet);
  require_versions(action, stage_.uses_of(input.choice, action.first, action.last));
  Slot& slot = slots_[action.tape];
  Tape& tape = *slot.tape;
  tape.clear();
  tape.mode = Tape::Mode::train;
  tape.hits = {};
  prepare(tape, action, input);
  const Boundary in = action.first > 0 ? arrival(slot, action.first, false) : Boundary{};
  const Boundary out = stage_.forward(action.first, action.last, in, tape);
  if (action.to_buffer >= 0) leave(out, ring(action.to_buffer, action.last, false));
}

void SubnetActions::backward(const Action& action, const StepInput& input) {
  see(action, input);
  const std::vector<UnitUse> uses = stage_.uses_of(input.choice, action.first, action.last);
  stage_.bind(uses, action.slab);
  blocks_of_slab_[action.slab] = {action.first, action.last};
  if (action.clears)
    for (const UnitUse& use : uses) updates_.clear(use);
  Slot& slot = slots_[action.tape];
  Tape& tape = *slot.tape;
  const std::size_t scratch_mark = scratch_.mark();
  tape.weight_gradients = Tape::WeightGradients::now;
  prepare(tape, action, input);
  const bool at_end = action.last == static_cast<int>(stage_.model().blocks().size());
  const Boundary gradient = stage_.backward(action.first, action.last,
                                            at_end ? Boundary{} : arrival(slot, action.last, true), tape);
  MP_CHECK(tape.saved() == 0, "{} left {} tensors on its tape", to_string(action), tape.saved());
  if (action.to_buffer >= 0) leave(gradient, ring(action.to_buffer, action.first, true));
  scratch_.release(scratch_mark);
  tape.clear();
  windows_.add(action.subnet, action.first, action.last);
  const int of_shard = stage_.layout().micro_batches() / stage_.layout().local_data_shards();
  if ((action.micro_batch + 1) % of_shard != 0) return;
  for (const UnitUse& use : uses) updates_.fold(use, action.micro_batch / of_shard);
}

Reductions::Request SubnetActions::reduce(Reductions& over_data, const Action& action,
                                          const StepInput& input) {
  if (stage_.model().is_shared(action.unit))
    return windows_.reduce(over_data, action.subnet, action.unit, action.part, action.parts);
  const auto& [first, last] = blocks_of_slab_.at(action.slab);
  stage_.bind(stage_.uses_of(input.choice, first, last), action.slab);
  return updates_.reduce(over_data, {action.unit, action.first}, action.part, action.parts);
}

StepRule SubnetActions::rule(std::int64_t valid) const {
  return {1.0 / static_cast<double>(stage_.targets_of_step()), static_cast<double>(valid), config_.train.clip,
          static_cast<float>(config_.optimizer.beta1), static_cast<float>(config_.optimizer.beta2)};
}

void SubnetActions::update(const Action& action, const StepInput& input) {
  see(action, input);
  if (names_unit(action)) return update_shared(action);
  const std::vector<UnitUse> uses = stage_.uses_of(input.choice, action.first, action.last);
  require_versions(action, uses);
  due_.erase(action.subnet);
  stage_.bind(uses, action.slab);
  std::vector<int> units;
  for (const UnitUse& use : uses) units.push_back(use.unit);
  if (!units.empty()) decisions_.decide(units, rule(input.valid));
  for (const int unit : units) {
    ++stage_.unit(unit).version;
    if (!is_left_out("units", "update"))
      updates_.optimizer_of(unit)->update(stage_.context().backend, input.rate, decisions_.of(unit));
  }
  tell(action, units, input.valid);
}

/// A window's targets are those of all its subnets that there are.
void SubnetActions::count_other_lanes(std::int64_t window) {
  const Layout& layout = stage_.layout();
  if (window < counted_) return;
  counted_ = window + 1;
  const std::int64_t first = window * config_.supernet.window;
  for (std::int64_t id = first; id < std::min(first + config_.supernet.window, known_); ++id)
    if (id % layout.grid.supernet != layout.coord.supernet) windows_.count(id, count_(id));
}

/// What all share: the rate is that of the window's last subnet, with which it is counted.
void SubnetActions::update_shared(const Action& action) {
  const std::int64_t last =
      std::min<std::int64_t>((action.subnet + 1) * config_.supernet.window, config_.train.steps) - 1;
  count_other_lanes(action.subnet);
  windows_.update(action.subnet, action.unit, rule(windows_.valid(action.subnet)),
                  rate_at(config_.optimizer.rate, last, config_.train.steps));
  if (std::find(counted_here_.begin(), counted_here_.end(), action.unit) != counted_here_.end())
    tell_shared(action.unit, last);
}

void SubnetActions::count(std::span<const double> decision, SubnetResult& result) const {
  const double clip = config_.train.clip;
  ++result.units;
  result.skipped += decision[Decision::skipped] != 0 ? 1 : 0;
  result.clipped += clip > 0 && decision[Decision::gradient_norm] > clip ? 1 : 0;
}

void SubnetActions::tell(const Action& action, const std::vector<int>& units, std::int64_t valid) {
  std::vector<Tensor> asked;
  for (const int unit : units) asked.push_back(decisions_.of(unit));
  if (stage_.has_head()) asked.push_back(updates_.scalars().sum_of_losses(losses_of(action.subnet)));
  answers_.ask(asked, [this, count = std::ssize(units),
                       result = SubnetResult{.subnet = action.subnet,
                                             .has_loss = stage_.has_head(),
                                             .valid = valid}](std::span<const double> numbers) mutable {
    for (std::ptrdiff_t k = 0; k < count; ++k)
      this->count(numbers.subspan(static_cast<std::size_t>(k) * Decision::places, Decision::places), result);
    if (result.has_loss) result.loss = numbers.back();
    if (hear_) hear_(result);
  });
}

/// What several stages share and update alike is told once its last unit is.
void SubnetActions::tell_shared(int unit, std::int64_t last) {
  const Tensor decision = decisions_.of(unit);
  answers_.ask({&decision, 1}, [this, last](std::span<const double> numbers) {
    count(numbers, of_window_);
    if (++updated_of_window_ < counted_here_.size()) return;
    of_window_.subnet = last;
    if (hear_) hear_(of_window_);
    of_window_ = {};
    updated_of_window_ = 0;
  });
}

void SubnetActions::finish() {
  while (!arrivals_.empty()) require_arrivals(arrivals_.begin()->first);
  answers_.finish();
}

}  // namespace mindpipe
