#include "state/decisions.h"

#include <algorithm>

namespace mindpipe {
namespace {

std::int64_t chunks_of(const DecisionScope& scope) {
  std::int64_t chunks = 0;
  for (const DecisionScope::Member& member : scope.members) chunks += member.optimizer->flat().chunks();
  return chunks;
}

}  // namespace

std::int64_t most_chunks(const DecisionScopes& scopes) {
  std::int64_t most = 0;
  for (const auto& [unit, scope] : scopes) most = std::max(most, chunks_of(scope));
  return most;
}

void set_spans(Spans& spans, const UnitOptimizer& optimizer, int tensor_rank, std::int64_t tensors,
               std::int64_t first_chunk, std::int64_t first_tensor) {
  const Unit& unit = optimizer.unit();
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
    if (unit.params()[p].split == Split::none && tensor_rank != 0) continue;
    for (int shard = 0; shard < unit.local_shards(p); ++shard) {
      const auto [begin, end] = optimizer.flat().chunks_of_shard(p, shard);
      spans[shard * tensors + first_tensor + p] = {first_chunk + begin, first_chunk + end};
    }
  }
}

std::size_t Decisions::bytes(const DecisionScopes& scopes, std::int64_t shards, std::int64_t most_tensors) {
  std::size_t bytes = 0;
  for (const std::int64_t count :
       {most_chunks(scopes), shards * most_tensors, 1 + most_tensors, std::int64_t{2}})
    bytes += bytes_for({count}, DType::f64);
  for (const auto& [unit, scope] : scopes)
    bytes += bytes_for({shards * scope.tensors, 2}, DType::i32) + bytes_for({2, 2}, DType::i32) +
             bytes_for({Decision::places}, DType::f64);
  return bytes;
}

DecisionScopes Decisions::of_step(const Stage& stage, const Optimizers& optimizers) {
  DecisionScope all;
  const auto& units = stage.model().units();
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    if (const auto here = optimizers.find(unit); here != optimizers.end())
      all.members.push_back({here->second.get(), stage.counts_here(unit) ? all.tensors : -1});
    all.tensors += std::ssize(units[unit]->params());
  }
  return {{all_units, all}};
}

DecisionScopes Decisions::of_each(const Optimizers& optimizers) {
  DecisionScopes scopes;
  for (const auto& [unit, optimizer] : optimizers)
    scopes[unit] = {{{optimizer.get(), 0}}, std::ssize(optimizer->unit().params())};
  return scopes;
}

Decisions::Decisions(Backend& backend, Groups groups, const DecisionScopes& scopes, std::int64_t most_tensors,
                     bool sharded)
    : backend_(backend), groups_(groups), sharded_(sharded) {
  const int shards = groups.tensor.local_shards();
  arena_ = Arena(backend.memory(), MemoryClass::workspace, bytes(scopes, shards, most_tensors));
  chunks_ = arena_.take({most_chunks(scopes)}, DType::f64);
  of_shards_ = arena_.take({shards * most_tensors}, DType::f64);
  sums_ = arena_.take({1 + most_tensors}, DType::f64);
  backend_.fill({sums_, 0});  // a diagnosis before the first step asks
  totals_ = arena_.take({2}, DType::f64);
  for (const auto& [unit, scope] : scopes) scopes_[unit] = take_scope(scope, unit == all_units);
}

Decisions::Scope Decisions::take_scope(const DecisionScope& of, bool with_loss) {
  Spans spans(groups_.tensor.local_shards() * of.tensors);
  Scope scope{.chunks = chunks_of(of), .tensors = of.tensors};
  std::int64_t first_chunk = 0;
  for (const auto& [optimizer, first_tensor] : of.members) {
    if (first_tensor >= 0)
      set_spans(spans, *optimizer, groups_.tensor.rank(), of.tensors, first_chunk, first_tensor);
    first_chunk += optimizer->flat().chunks();
    scope.members.push_back(optimizer);
  }
  scope.spans = take_spans(backend_, arena_, spans);
  scope.totals = take_spans(backend_, arena_, {{0, with_loss ? 1 : 0}, {1, 1 + of.tensors}});
  scope.decision = arena_.take({Decision::places}, DType::f64);
  backend_.fill({scope.decision, 0});
  return scope;
}

void Decisions::decide(std::span<const UnitUse> uses, const StepRule& rule) {
  chosen_.clear();
  for (const UnitUse& use : uses) chosen_.push_back(&scopes_.at(use.unit));
  decide_chosen(rule);
}

void Decisions::decide_step(const StepRule& rule) {
  chosen_ = {&scopes_.at(all_units)};
  decide_chosen(rule);
}

/// One number for each tensor of the chosen scopes.
void Decisions::decide_chosen(const StepRule& rule) {
  std::int64_t all = 0, first = 0;
  for (const Scope* scope : chosen_) all += scope->tensors;
  MP_CHECK(all < sums_.count(), "decisions over {} tensors at a time, where {} have room", all,
           sums_.count() - 1);
  const int shards = groups_.tensor.local_shards();
  for (const Scope* scope : chosen_) {
    const Tensor chunks = chunks_.range(0, scope->chunks);
    if (sharded_) backend_.fill({chunks, 0});
    std::int64_t first_chunk = 0;
    for (const UnitOptimizer* optimizer : scope->members) {
      optimizer->chunk_squares(backend_, chunks.range(first_chunk, optimizer->flat().chunks()));
      first_chunk += optimizer->flat().chunks();
    }
    if (sharded_) groups_.data.sum_over_ranks(chunks);
    for (int shard = 0; shard < shards; ++shard)
      backend_.sum_spans({chunks, scope->spans.row_range(shard * scope->tensors, scope->tensors),
                          of_shards_.range(shard * all + first, scope->tensors)});
    first += scope->tensors;
  }
  groups_.tensor.sum_over_shards(of_shards_.range(0, shards * all).reshaped({shards, all}),
                                 sums_.range(1, all));
  if (is_of_step()) groups_.pipeline.sum_over_ranks(sums_);
  first = 0;
  for (const Scope* scope : chosen_) {
    backend_.sum_spans({sums_.range(first, 1 + scope->tensors), scope->totals, totals_});
    backend_.clip_and_scale({rule, totals_, scope->decision});
    first += scope->tensors;
  }
}

Decisions::Kept Decisions::kept() const {
  Kept kept{std::vector<double>(Decision::places), std::vector<double>(sums_.count())};
  backend_.download(of(all_units), kept.decision.data());
  backend_.download(sums_, kept.sums.data());
  return kept;
}

void Decisions::go_on_from(const Kept& kept) {
  backend_.upload(kept.decision.data(), of(all_units));
  backend_.upload(kept.sums.data(), sums_);
  backend_.synchronize();
}

std::int64_t Decisions::applied(int unit) const {
  double times = 0;
  backend_.download(of(unit).range(Decision::applied_steps, 1), &times);
  return static_cast<std::int64_t>(times);
}

void Decisions::set_applied(int unit, std::int64_t times) {
  const auto count = static_cast<double>(times);
  backend_.upload(&count, of(unit).range(Decision::applied_steps, 1));
  backend_.synchronize();
}

}  // namespace mindpipe
