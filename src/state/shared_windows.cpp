#include "state/shared_windows.h"

#include <algorithm>

#include "comm/fault_points.h"
#include "config/sections/search.h"
#include "config/sections/train.h"
#include "optim/rate.h"

namespace mindpipe {
namespace {

/// A parameter of which T-ths of the sequence give parts, on ranks that have a part of the sequence each.
bool is_split(const Stage& stage, const Unit& unit, int param) {
  const LayerContext& context = stage.context();
  return context.sequence_parallel && context.tensor.size() > 1 && unit.params()[param].form != Form::whole;
}

/// Elements of the largest such parameter, once for each local shard.
std::int64_t cut_elements(const Stage& stage) {
  std::int64_t most = 0;
  for (const int unit : stage.local_units()) {
    const Unit& of_model = *stage.model().units()[unit];
    for (int p = 0; p < static_cast<int>(of_model.params().size()); ++p)
      if (stage.model().is_shared(unit) && is_split(stage, of_model, p))
        most = std::max(most, of_model.shard_shape(p).count());
  }
  return most * stage.context().tensor.local_shards();
}

}  // namespace

/// The other ranks of the program that use a unit.
std::vector<int> SharedWindows::others_of(const Stage& stage, const Outline& outline, int unit) {
  std::vector<int> ranks = outline.ranks_of(unit);
  std::erase(ranks, stage.layout().program_rank());
  return ranks;
}

std::size_t SharedWindows::bytes(const Stage& stage, const Outline& outline) {
  std::size_t bytes = cut_elements(stage) > 0 ? bytes_for({cut_elements(stage)}, DType::i64) : 0;
  for (const int unit : stage.local_units()) {
    if (!stage.model().is_shared(unit)) continue;
    bytes +=
        2 * outline.ranks_of(unit).size() * bytes_for({numbers_of(*stage.model().units()[unit])}, DType::i64);
  }
  return bytes;
}

std::size_t SharedWindows::exchange_bytes(const Stage& stage) {
  const Communicator& tensor = stage.context().tensor;
  return Communicator::scalars_bytes(SumTree(tensor.logical(), tensor.size()),  // as long as f64
                                     cut_elements(stage) / tensor.local_shards());
}

SharedWindows::SharedWindows(Stage& stage, Residency& residency, GradientUpdates& updates, Groups groups,
                             const SupernetConfig& supernet, const TrainConfig& train, const RateConfig& rate,
                             const Outline& outline)
    : stage_(stage),
      residency_(residency),
      updates_(updates),
      groups_(groups),
      rate_(rate),
      window_(supernet.window),
      subnets_(train.steps),
      arena_(stage.context().backend.memory(), MemoryClass::gradients, bytes(stage, outline)) {
  const auto take = [&](const Unit& unit) {
    std::array<Tensor, 2> pair;
    for (Tensor& one : pair) {
      one = arena_.take({numbers_of(unit)}, DType::i64);
      stage_.context().backend.fill({one, 0});
    }
    return pair;
  };
  for (const int unit : stage.local_units()) {
    if (!stage.model().is_shared(unit)) continue;
    Sums& sums = sums_[unit];
    sums.of_window = take(stage.unit(unit));
    for (const int block : stage.model().blocks_of(unit))
      if (stage.has_block(block)) uses_.push_back({unit, block});
    for (const int rank : others_of(stage, outline, unit)) sums.arrived[rank] = take(stage.unit(unit));
    for (int use = 0; use < stage.unit(unit).uses(); ++use)
      stage.context().backend.fill({stage.unit(unit).gradients().accumulators(use), 0});
  }
  if (cut_elements(stage) > 0) of_shards_ = arena_.take({cut_elements(stage)}, DType::i64);
}

void SharedWindows::begin(std::int64_t first) {
  counted_ = first;
  valid_.clear();
}

void SharedWindows::add(std::int64_t subnet, int first, int last) {
  for (const UnitUse& use : uses_)
    if (use.block >= first && use.block < last && !is_left_out("windows", "add"))
      add_use(use, sums_.at(use.unit).of_window[window_of(subnet) % 2]);
}

/// What every tensor rank holds alike counts once, on each of them; T-ths of the sequence count one by one.
void SharedWindows::add_use(const UnitUse& use, const Tensor& totals) {
  const Unit& unit = stage_.unit(use.unit);
  const int number = stage_.use_of(use);
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
    if (unit.gradients().has_sequence_parts(p)) {
      const Tensor parts = unit.gradients().sequence_parts(p, number);
      for (std::int64_t i = 0; i < parts.shape[0]; ++i) add_parts(unit, p, parts.at(i), totals);
    } else {
      add_parts(
          unit, p,
          unit.gradients().root(number).range(
              unit.flat_offset(p, 0), unit.flat_offset(p, unit.local_shards(p)) - unit.flat_offset(p, 0)),
          totals);
    }
  }
}

void SharedWindows::add_parts(const Unit& unit, int param, const Tensor& gradient, const Tensor& totals) {
  stage_.context().backend.add_as_integers({gradient,
                                            totals.range(unit.flat_offset(param, 0), gradient.count()),
                                            totals.range(unit.flat_count(), 1)});
}

Reductions::Request SharedWindows::reduce(Reductions& over_data, std::int64_t window, int unit, int part,
                                          int parts) {
  const Tensor& totals = sums_.at(unit).of_window[window % 2];
  const std::int64_t pieces = std::int64_t{over_data.size()} * parts;
  std::vector<Tensor> of_ranks;
  for (int rank = 0; rank < over_data.size(); ++rank)
    of_ranks.push_back(part_of(totals, std::int64_t{rank} * parts + part, pieces));
  return over_data.sum_of_integers(std::move(of_ranks));
}

Tensor SharedWindows::part(const Action& message) const {
  const Sums& sums = sums_.at(message.unit);
  const std::array<Tensor, 2>& of_windows = sends(message) ? sums.of_window : sums.arrived.at(message.peer);
  return part_of(of_windows[message.owner.number % 2], message.part, message.parts);
}

/// Parts that tensor ranks have of a parameter's sum; exact, whatever the order.
void SharedWindows::sum_over_sequence(Unit& unit, const Tensor& totals) {
  Backend& backend = stage_.context().backend;
  const int local = groups_.tensor.local_shards();
  const auto sum = [&](const Tensor& own) {
    const Tensor shards = of_shards_.range(0, local * own.count()).reshaped({local, own.count()});
    backend.fill({shards, 0});
    backend.copy(own, shards.at(0));
    groups_.tensor.sum(shards, own);
  };
  std::vector<int> cut;
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
    if (is_split(stage_, unit, p)) cut.push_back(p);
  // What one rank's part of the sequence has marked falls away on all of them.
  if (!cut.empty()) sum(totals.range(unit.flat_count(), 1));
  for (const int p : cut) sum(totals.range(unit.flat_offset(p, 0), unit.shard_shape(p).count()));
}

void SharedWindows::update(std::int64_t window, int number) {
  Backend& backend = stage_.context().backend;
  Unit& unit = stage_.unit(number);
  Sums& sums = sums_.at(number);
  const Tensor& totals = sums.of_window[window % 2];
  for (auto& [rank, arrived] : sums.arrived) {
    backend.add({totals, arrived[window % 2], totals});
    backend.fill({arrived[window % 2], 0});  // a lane without a subnet in a window sends nothing
  }
  sum_over_sequence(unit, totals);
  const Tensor marks = totals.range(unit.flat_count(), 1), root = unit.gradients().root(0);
  backend.from_integers({totals.range(0, unit.flat_count()), marks, root});
  backend.fill({marks, 0});
  const UnitUse whole{number, 0};
  updates_.decide({&whole, 1}, valid_.at(window));
  residency_.values().open(number, window);
  updates_.update(number, rate_at(rate_, last_of(window), subnets_));
  backend.fill({root, 0});
  valid_.erase(valid_.begin(), valid_.lower_bound(window));
}

}  // namespace mindpipe
