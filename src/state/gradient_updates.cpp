#include "state/gradient_updates.h"

#include <algorithm>

#include "comm/fault_points.h"
#include "core/sum_lists.h"

namespace mindpipe {

GradientUpdates::GradientUpdates(Stage& stage, Residency& residency, const TrainConfig& train,
                                 const OptimizerConfig& optimizer, DeviceKind device, Groups groups)
    : stage_(stage),
      residency_(residency),
      train_(train),
      optimizer_(optimizer),
      device_(device),
      groups_(groups),
      alone_(stage.context().backend, stage.layout().tensor_shards),
      over_data_(stage.layout().data_tree()) {}

void GradientUpdates::decide_scopes(const DecisionScopes& scopes, std::int64_t most_tensors) {
  decisions_.emplace(stage_.context().backend, groups_, scopes, most_tensors, residency_.is_sharded());
  residency_.count_by(*decisions_);
}

void GradientUpdates::allocate_for_steps() {
  allocate_for_reading();
  decide_steps();
}

void GradientUpdates::take_units() {
  if (is_left_out("moves", "decide")) return;
  const Decisions::Kept kept = decisions_->kept();
  measured_ = nullptr;
  squares_.reset();
  decisions_.reset();
  decide_steps();
  if (!is_left_out("moves", "applied")) decisions_->go_on_from(kept);
}

void GradientUpdates::decide_steps() {
  const DecisionScopes scopes = Decisions::of_step(stage_, residency_.shares());
  decide_scopes(scopes, scopes.begin()->second.tensors);
  if (const auto size = squares_size(train_, device_, stage_.layout(), stage_.model(), residency_.shares()))
    squares_.emplace(stage_, residency_.shares(), groups_, *size, residency_.is_sharded());
}

void GradientUpdates::allocate_for_subnets(std::int64_t most_tensors) {
  allocate_for_reading();
  decide_scopes(Decisions::of_each(residency_.shares()), most_tensors);
}

void GradientUpdates::clear(const UnitUse& use) {
  if (!is_left_out("gradients", "clear"))
    stage_.context().backend.fill({stage_.unit(use.unit).accumulators(stage_.use_of(use)), 0});
}

void GradientUpdates::measure(bool measures) {
  measures_ = squares_ && measures;
  if (measures_) squares_->begin();
}

std::size_t GradientUpdates::zeros_bytes(const Unit& unit) const {
  std::size_t bytes = 0;
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
    if (unit.params()[p].form == Form::positions && splits_sequence())
      bytes = std::max(bytes, bytes_for({groups_.tensor.local_shards(), unit.shard_shape(p).count()},
                                        unit.gradient_dtype()));
  return bytes;
}

void GradientUpdates::combine_sequence(Unit& unit, int use) {
  const LayerContext& context = stage_.context();
  const bool cut = splits_sequence();
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
    const Form form = unit.params()[p].form;
    const bool by_shards = form == Form::shards, in_parts = unit.has_sequence_parts(p),
               on_ranks = by_shards ? groups_.tensor.size() > 1 : cut && form != Form::whole;
    if ((!in_parts && !on_ranks) || is_left_out("gradients", "combine_sequence")) continue;
    const std::int64_t elements = unit.shard_shape(p).count();
    const Tensor root = unit.root(use).range(unit.flat_offset(p, 0), elements);
    if (in_parts) {
      (cut || by_shards ? groups_.tensor : alone_).sum(unit.sequence_parts(p, use), root);
    } else if (form == Form::rows || by_shards) {
      groups_.tensor.sum(root.reshaped({1, elements}), root);
    } else {
      // Every row has one T-th that adds to it; the others give zeros, which no sum rounds.
      const int local = groups_.tensor.local_shards();
      const Tensor shards{
          zeros_.take(context.backend.memory(), zeros_bytes(unit)), {local, elements}, root.dtype};
      context.backend.fill({shards, 0});
      context.backend.copy(root, shards.range(0, elements));
      groups_.tensor.sum(shards, root);
    }
  }
}

/// The open sums of the binary counter are the levels, and the newest is the root.
void GradientUpdates::count_shard(Unit& unit, int use, int shard, std::int64_t first, std::int64_t elements) {
  Backend& backend = stage_.context().backend;
  const Tensor root = unit.root(use).range(first, elements);
  const auto level_at = [&](int level) { return unit.level(level, use).range(first, elements); };
  const CounterStep step = counter_step(over_data_, shard);
  for (int level = step.open; level-- > step.last;)
    if (!is_left_out("gradients", "fold")) backend.add({level_at(level), root, root});
  if (step.moves_to < 0) return;
  backend.copy(root, level_at(step.moves_to));
  backend.fill({root, 0});
}

/// Spoils the first element of a parameter's gradient. What all tensor ranks hold alike is looked at on the
/// first of them alone, so elsewhere it stays as it is.
bool GradientUpdates::spoil(const Unit& unit, int use, int param) {
  const ParamSpec& spec = unit.params()[param];
  if (spec.split == Split::none && groups_.tensor.rank() != 0) return false;
  stage_.context().backend.fill({unit.root(use).range(unit.flat_offset(param, 0), 1), *spoils_});
  return true;
}

void GradientUpdates::fold(const UnitUse& folded, int shard, MadeGradients made) {
  Unit& unit = stage_.unit(folded.unit);
  const int use = stage_.use_of(folded), params = static_cast<int>(unit.params().size());
  if (made != MadeGradients::later) combine_sequence(unit, use);
  const auto is_made = [&](int p) {
    return made == MadeGradients::all || unit.params()[p].product == (made == MadeGradients::later);
  };
  for (int p = 0; p < params && measures_; ++p)
    if (is_made(p)) squares_->add(folded, p, shard);
  for (int p = 0; p < params && spoils_; ++p)
    if (is_made(p) && spoil(unit, use, p)) spoils_.reset();
  if (made == MadeGradients::all) count_shard(unit, use, shard, 0, unit.flat_count());
  for (int p = 0; p < params && made != MadeGradients::all; ++p)
    if (is_made(p))
      count_shard(unit, use, shard, unit.flat_offset(p, 0),
                  unit.flat_offset(p, unit.local_shards(p)) - unit.flat_offset(p, 0));
  if (made == MadeGradients::later || shard + 1 == stage_.layout().local_data_shards()) return;
  for (int p = 0; p < params; ++p)
    if (unit.has_sequence_parts(p)) stage_.context().backend.fill({unit.sequence_parts(p, use), 0});
}

std::vector<Tensor> GradientUpdates::pieces_of(int unit, const Tensor& flat, int part, int parts) const {
  const int ranks = groups_.data.size();
  const auto cuts = share_edges(stage_.unit(unit), ranks * parts);
  std::vector<Tensor> pieces;
  for (int r = 0; r < ranks; ++r) {
    const int piece = piece_of(r, part, parts);
    pieces.push_back(flat.range(cuts[piece], cuts[piece + 1] - cuts[piece]));
  }
  return pieces;
}

Reductions::Request GradientUpdates::reduce(Reductions& over_data, const UnitUse& use, int part, int parts,
                                            bool moves_out) {
  std::vector<Tensor> pieces = pieces_of(use.unit, accumulator_of(use), part, parts);
  std::vector<std::vector<Tensor>> earlier;
  for (int level = 0; level + 1 < static_cast<int>(over_data_.roots().size()); ++level)
    earlier.push_back(
        pieces_of(use.unit, stage_.unit(use.unit).level(level, stage_.use_of(use)), part, parts));
  if (!residency_.is_sharded()) return over_data.sum(std::move(pieces), std::move(earlier));
  const auto cuts = share_edges(stage_.unit(use.unit), groups_.data.size() * parts);
  const std::int64_t* own = &cuts[piece_of(groups_.data.rank(), 0, parts)];
  const UnitOptimizer& optimizer = residency_.share(use.unit);
  const Tensor place =
      moves_out ? optimizer.gradient_share(stage_.use_of(use))
                : accumulator_of(use).range(optimizer.begin(), optimizer.end() - optimizer.begin());
  return over_data.sum_scatter(std::move(pieces), place.range(own[part] - own[0], own[part + 1] - own[part]),
                               std::move(earlier));
}

Reductions::Request GradientUpdates::gather(Reductions& over_data, int unit, int part, int parts) {
  if (part + 1 == parts) residency_.gathered(unit);
  return over_data.gather(pieces_of(unit, stage_.unit(unit).flat_values(), part, parts));
}

void GradientUpdates::settle(Reductions& over_data) {
  for (const int unit : stage_.local_units()) {
    if (residency_.is_whole(unit)) continue;
    const Reductions::Request request = gather(over_data, unit, 0, 1);
    over_data.wait(request);
    over_data.take_end(request);
  }
}

std::int64_t GradientUpdates::sent_by_reduce(const UnitUse& use, int part, int parts) const {
  const std::vector<Tensor> pieces = pieces_of(use.unit, accumulator_of(use), part, parts);
  const int own = groups_.data.rank(), ranks = groups_.data.size();
  std::size_t sent = residency_.is_sharded() ? 0 : pieces[own].bytes() * static_cast<std::size_t>(ranks - 1);
  for (int peer = 0; peer < ranks; ++peer)
    if (peer != own) sent += over_data_.roots().size() * pieces[peer].bytes();
  return static_cast<std::int64_t>(sent);
}

std::int64_t GradientUpdates::sent_by_gather(int unit, int part, int parts) const {
  const std::vector<Tensor> pieces = pieces_of(unit, stage_.unit(unit).flat_values(), part, parts);
  return static_cast<std::int64_t>(pieces[groups_.data.rank()].bytes()) * (groups_.data.size() - 1);
}

Tensor GradientUpdates::exchanged_part(const UnitUse& use, int part, int parts) const {
  const Tensor whole = residency_.share(use.unit).gradient_share(stage_.use_of(use));
  const std::int64_t first = whole.count() * part / parts;
  return whole.range(first, whole.count() * (part + 1) / parts - first);
}

/// Use 0 += the others, in model order.
void GradientUpdates::add_uses() {
  for (int index : stage_.local_units()) {
    const UnitOptimizer& optimizer = residency_.share(index);
    for (const auto& [left, right] : additions_in_order(stage_.unit(index).uses())) {
      const Tensor sum = optimizer.gradient_share(left);
      if (sum.count() > 0 && !is_left_out("gradients", "add_uses"))
        stage_.context().backend.add({sum, optimizer.gradient_share(right), sum});
    }
  }
}

StepRule GradientUpdates::rule(std::int64_t valid) const {
  return {1.0 / static_cast<double>(stage_.targets_of_step()), static_cast<double>(valid), train_.clip,
          static_cast<float>(optimizer_.beta1), static_cast<float>(optimizer_.beta2)};
}

std::int64_t GradientUpdates::decide_step(const Tensor& losses, std::int64_t valid) {
  if (measures_) measured_ = &squares_->finish();
  add_uses();
  std::vector<std::int64_t> of_batch{valid};
  groups_.data.sum_integers(of_batch);
  losses_->sum_over_data(losses, decisions_->loss());
  decisions_->decide_step(rule(of_batch[0]));
  return of_batch[0];
}

void GradientUpdates::update(int unit, double rate) {
  const Layout& layout = stage_.layout();
  if (!is_left_out("units", "update"))
    residency_.share(unit).update(stage_.context().backend, rate, decisions_->of(unit),
                                  layout.batch / layout.samples);
  residency_.updated(unit);
}

}  // namespace mindpipe
