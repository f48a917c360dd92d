#include "program/check/sum_book.h"

#include <algorithm>

#include "core/sum_lists.h"
#include "program/moving_step.h"

namespace mindpipe {

bool SumBook::Parts::add(const Action& action) {
  if (next == 0) all = action.parts;
  const bool is_next = action.parts == all && action.part == next;
  next = action.part + 1;
  return is_next;
}

SumBook::SumBook(Reading& reading) : reading_(reading) {
  const Outline& outline = reading.outline;
  if (reading.of != ListOf::step) return;
  std::vector<UnitUse> uses;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == reading.rank) {
      const std::vector<UnitUse> more =
          outline.uses_in(outline.first_block[chunk], outline.first_block[chunk + 1]);
      uses.insert(uses.end(), more.begin(), more.end());
    }
  expect(0, 0, outline.all_blocks(), uses);
}

/// What all subnets share is summed in windows, as integers that have no order.
bool SumBook::is_summed_apart(int unit) const {
  return reading_.of == ListOf::subnets && reading_.outline.units[unit].shared;
}

void SumBook::expect(std::int64_t subnet, int first, int last, const std::vector<UnitUse>& uses) {
  const bool has_sums =
      std::any_of(uses.begin(), uses.end(), [&](const UnitUse& use) { return !is_summed_apart(use.unit); });
  if (reading_.of == ListOf::subnets && !has_sums) return;  // no update would end it
  Network& network = networks_[subnet];
  network.first = first;
  network.blocks.resize(last - first);
  const Outline& outline = reading_.outline;
  const bool has_head = reading_.of == ListOf::subnets
                            ? last == outline.all_blocks()
                            : outline.rank_of(outline.all_chunks() - 1) == reading_.rank;
  if (has_head) network.has_loss.assign(outline.micro_batches, 0);
  for (const UnitUse& use : uses)
    if (!is_summed_apart(use.unit)) network.blocks[use.block - first].units.push_back(use.unit);
}

SumBook::Network* SumBook::network() {
  const auto found = networks_.find(reading_.of == ListOf::step ? 0 : reading_.action().owner.number);
  return found == networks_.end() ? nullptr : &found->second;
}

template <class... Words>
void SumBook::wrong_gradient(const UnitUse& use, fmt::format_string<Words...> sentence, Words&&... words) {
  const std::string shard =
      is_pass(reading_.action()) ? fmt::format(", shard {}", reading_.action().shard) : "";
  reading_.wrong("the gradient of unit {} in block {}{} {}", use.unit, use.block, shard,
                 fmt::format(sentence, std::forward<Words>(words)...));
}

void SumBook::see() {
  const Action& action = reading_.action();
  if (is_pass(action)) {
    // A subnet that nobody knows is another book's finding.
    if (Network* const known = network(); known != nullptr) pass(*known);
    return;
  }
  if (action.payload == Payload::unit_gradient) return exchange();
  switch (action.kind) {
    case ActionKind::reduce:
      return reduce();
    case ActionKind::sum_scalar:
      return sum_scalar();
    case ActionKind::update:
      return reading_.of == ListOf::subnets ? update_subnet() : update();
    case ActionKind::gather:
      return gather();
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::send:
    case ActionKind::receive:
    case ActionKind::fetch:
    case ActionKind::evict:
    case ActionKind::stash:
    case ActionKind::unstash:
      return;
  }
}

void SumBook::pass(Network& network) {
  const Action& action = reading_.action();
  if (is_forward(action)) return reads(network);
  const MadeGradients made = pass_of(action)->makes;
  for (int number = action.first; number < action.last; ++number) {
    Block* const block = network.block(number);
    if (block == nullptr || block->units.empty()) continue;
    if (action.clears) block->at_once.chain = block->later.chain = {true};
    for (Half* half : {&block->at_once, &block->later}) {
      const bool is_made =
          made == MadeGradients::all || (made == MadeGradients::later) == (half == &block->later);
      if (!is_made) continue;
      adds(number, *block, *half);
      if (action.fold) folds(number, *block, *half);
    }
  }
}

/// A forward reads whole values, of one version, and the last one leaves its micro-batch's losses.
void SumBook::reads(Network& network) {
  const Action& action = reading_.action();
  if (!network.has_loss.empty() && action.last == reading_.outline.all_blocks()) {
    if (network.has_loss[action.micro_batch]) reading_.wrong("its losses are there");
    network.has_loss[action.micro_batch] = 1;
  }
  if (reading_.of != ListOf::step) return;
  for (int number = action.first; number < action.last; ++number)
    for (const int unit : network.blocks[number].units) {
      const Values& values = values_of(unit);
      if (values.is_updated) reading_.wrong("reads unit {} behind its update", unit);
      else if (!values.is_whole) reading_.wrong("reads unit {}, of which parts are old", unit);
      else if (values.gathered_at.exists() && !reading_.has_ended(values.gathered_at))
        reading_.wrong("does not wait for the values of unit {}", unit);
    }
}

void SumBook::adds(int number, Block& block, Half& half) {
  const Action& action = reading_.action();
  const UnitUse use{block.units.front(), number};
  auto& [is_known, first, next] = half.chain;
  if (!is_known) wrong_gradient(use, "is added to what nobody has zeroed");
  else if (first == next) first = action.micro_batch;
  else if (next != action.micro_batch)
    wrong_gradient(use, "is the sum of micro-batches [{1}, {2}), to which micro-batch {0} is added",
                   action.micro_batch, first, next);
  next = action.micro_batch + 1;
}

/// The counter takes one leaf, and its step is that of the tree's proof, if leaves come in order.
void SumBook::folds(int number, Block& block, Half& half) {
  const Outline& outline = reading_.outline;
  const Action& action = reading_.action();
  const UnitUse use{block.units.front(), number};
  const int each = outline.micro_batches_of_shard(), begin = action.shard * each;
  const auto& [is_known, first, next] = half.chain;
  if (is_known && (first != begin || next != begin + each))
    wrong_gradient(use, "is the sum of micro-batches [{}, {}), and is folded as that of [{}, {})", first,
                   next, begin, begin + each);
  if (half.folded != action.shard) wrong_gradient(use, "is folded, but shard {} is next", half.folded);
  half.folded = action.shard + 1;
  half.chain = {half.folded < outline.shards};  // the last root stays where it is
}

/// The gradient of a use here has to be all that the ranks' shares of the batch make.
void SumBook::require_gradient(Network& network, const UnitUse& use) {
  Block* const block = network.block(use.block);
  if (block == nullptr || std::find(block->units.begin(), block->units.end(), use.unit) == block->units.end())
    return wrong_gradient(use, "is not made here");
  const int made = std::min(block->at_once.folded, block->later.folded);
  if (made < reading_.outline.shards)
    wrong_gradient(use, "has {} of {} shards", made, reading_.outline.shards);
}

void SumBook::reduce() {
  const Action& action = reading_.action();
  if (is_summed_apart(action.unit)) return;
  const UnitUse use{action.unit, action.first};
  Network* const known = network();
  if (known == nullptr) return;
  require_gradient(*known, use);
  Block* const block = known->block(use.block);
  if (block == nullptr) return;
  Parts& summed = block->summed[use.unit];
  if (!summed.add(action)) wrong_gradient(use, "is summed over data in other parts");
}

/// A use's gradient, summed over data, goes to another home of its unit.
void SumBook::exchange() {
  const Action& action = reading_.action();
  if (is_summed_apart(action.unit)) return;
  const UnitUse use{action.unit, action.first};
  if (!sends(action)) {
    if (!arrived_[use].add(action)) wrong_gradient(use, "arrives out of order, or a second time");
    return;
  }
  if (!sent_[{use, action.peer}].add(action)) wrong_gradient(use, "leaves out of order, or a second time");
  Network& step = networks_.begin()->second;
  require_gradient(step, use);
  if (Block* const block = step.block(use.block); block != nullptr && !block->summed[use.unit].is_whole())
    wrong_gradient(use, "leaves before all of it is summed over data");
}

void SumBook::require_losses(const Network& network) {
  const auto missing = std::find(network.has_loss.begin(), network.has_loss.end(), 0);
  if (missing != network.has_loss.end())
    reading_.wrong("the losses of micro-batch {} are missing", missing - network.has_loss.begin());
}

/// The scalars are of whole gradients: the uses of each unit are added to the first one.
void SumBook::sum_scalar() {
  const Outline& outline = reading_.outline;
  Network& step = networks_.begin()->second;
  require_losses(step);
  for (const int unit : outline.units_of_rank(reading_.rank)) {
    const std::vector<int>& blocks = outline.units[unit].blocks;
    const auto require_use = [&](int use) {
      const UnitUse place{unit, blocks[use]};
      if (outline.rank_of_block(place.block) != reading_.rank) {
        if (!arrived_[place].is_whole()) wrong_gradient(place, "has not arrived");
        return;
      }
      require_gradient(step, place);
      if (!step.block(place.block)->summed[unit].is_whole())
        wrong_gradient(place, "is not summed over data, or not all of it");
    };
    require_use(0);
    for (const Addition& addition : additions_in_order(static_cast<int>(blocks.size())))
      require_use(addition.right);
  }
  is_decided_ = true;
}

void SumBook::update() {
  const int unit = reading_.action().unit;
  Values& values = values_of(unit);
  if (const auto way = way_of(reading_.outline, unit); way && way->second == reading_.rank) {
    const UnitUse use{unit, reading_.outline.units[unit].blocks.front()};
    if (!arrived_[use].is_whole()) wrong_gradient(use, "has not arrived");
  }
  if (!is_decided_) reading_.wrong("the step is not decided");
  if (values.is_updated) reading_.wrong("unit {} has its next version", unit);
  values.is_updated = true;
  values.is_whole = !reading_.outline.sharded_optimizer;
  values.gathered = {};
}

/// A subnet's units are decided each by itself, of the gradients that its passes here have made.
void SumBook::update_subnet() {
  const Action& action = reading_.action();
  if (names_unit(action)) return;  // of a window
  Network* const known = network();
  if (known == nullptr) return;
  require_losses(*known);
  for (int number = action.first; number < action.last; ++number) {
    Block* const block = known->block(number);
    if (block == nullptr) continue;
    for (const int unit : block->units) {
      require_gradient(*known, {unit, number});
      if (reading_.outline.data > 1 && !block->summed[unit].is_whole())
        wrong_gradient({unit, number}, "is not summed over data, or not all of it");
    }
  }
  networks_.erase(action.owner.number);
}

/// A step finds shares of the values that the step before has left, and brings them together.
void SumBook::gather() {
  const Action& action = reading_.action();
  Values& values = values_of(action.unit);
  if (values.is_whole) reading_.wrong("unit {} is whole", action.unit);
  if (!values.gathered.add(action)) reading_.wrong("another part of unit {} is next", action.unit);
  values.is_whole = values.gathered.is_whole();
  values.gathered_at = reading_.here();
}

void SumBook::end() {
  if (reading_.of != ListOf::step) return;
  if (!is_decided_) reading_.missing("no gradient is decided upon");
  for (const int unit : units_updated_by(reading_.outline, reading_.rank))
    if (!values_of(unit).is_updated) reading_.missing("unit {} has no next version", unit);
}

}  // namespace mindpipe
