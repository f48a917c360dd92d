#include "state/unit_decisions.h"

#include <algorithm>

namespace mindpipe {
namespace {

std::int64_t most_chunks(const UnitDecisions::Optimizers& optimizers) {
  std::int64_t most = 0;
  for (const auto& [unit, optimizer] : optimizers) most = std::max(most, optimizer->chunks());
  return most;
}

std::int64_t tensors_of(const UnitOptimizer& optimizer) {
  return static_cast<std::int64_t>(optimizer.unit().params().size());
}

}  // namespace

std::size_t UnitDecisions::bytes(const Optimizers& optimizers, int local_shards, std::int64_t most_tensors) {
  std::size_t bytes = bytes_for({2}, DType::f64);
  for (const std::int64_t count : {most_chunks(optimizers), local_shards * most_tensors, most_tensors})
    bytes += bytes_for({count}, DType::f64);
  for (const auto& [unit, optimizer] : optimizers)
    bytes += bytes_for({local_shards * tensors_of(*optimizer), 2}, DType::i32) +
             bytes_for({1, 2}, DType::i32) + bytes_for({Decision::places}, DType::f64);
  return bytes;
}

std::size_t UnitDecisions::exchange_bytes(const Communicator& tensor, std::int64_t most_tensors) {
  return Communicator::scalars_bytes(SumTree(tensor.logical(), tensor.size()), most_tensors);
}

UnitDecisions::UnitDecisions(Backend& backend, Communicator& tensor, const Optimizers& optimizers,
                             std::int64_t most_tensors)
    : backend_(backend),
      tensor_(tensor),
      arena_(backend.memory(), MemoryClass::workspace,
             bytes(optimizers, tensor.local_shards(), most_tensors)) {
  chunks_ = arena_.take({most_chunks(optimizers)}, DType::f64);
  of_shards_ = arena_.take({tensor.local_shards() * most_tensors}, DType::f64);
  sums_ = arena_.take({most_tensors}, DType::f64);
  totals_ = arena_.take({2}, DType::f64);
  backend.fill({totals_, 0});
  for (const auto& [unit, optimizer] : optimizers) add_unit(unit, *optimizer);
}

void UnitDecisions::add_unit(int number, UnitOptimizer& optimizer) {
  const Unit& unit = optimizer.unit();
  const int params = static_cast<int>(unit.params().size());
  Rows& rows = units_[number];
  rows.optimizer = &optimizer;
  rows.count = params;
  std::vector<std::int32_t> spans(2 * tensor_.local_shards() * params, 0), whole{0, params};
  for (int p = 0; p < params; ++p)
    for (int shard = 0; shard < unit.local_shards(p); ++shard) {
      // What every tensor rank holds alike is counted by the first.
      if (unit.params()[p].split == Split::none && tensor_.rank() != 0) continue;
      const auto [begin, end] = optimizer.chunks_of_shard(p, shard);
      spans[2 * (shard * params + p)] = static_cast<std::int32_t>(begin);
      spans[2 * (shard * params + p) + 1] = static_cast<std::int32_t>(end);
    }
  rows.spans = arena_.take({tensor_.local_shards() * params, 2}, DType::i32);
  rows.tensors = arena_.take({1, 2}, DType::i32);
  rows.decision = arena_.take({Decision::places}, DType::f64);
  if (params > 0) backend_.upload(spans.data(), rows.spans);
  backend_.upload(whole.data(), rows.tensors);
  backend_.fill({rows.decision, 0});
}

void UnitDecisions::decide(std::span<const int> units, const StepRule& rule) {
  std::int64_t all = 0, first = 0;
  for (const int unit : units) all += units_.at(unit).count;
  MP_CHECK(all <= sums_.count(), "decisions over {} tensors at a time, where {} have room", all,
           sums_.count());
  const int shards = tensor_.local_shards();
  for (const int unit : units) {
    const Rows& rows = units_.at(unit);
    const Tensor chunks = chunks_.range(0, rows.optimizer->chunks());
    rows.optimizer->chunk_squares(backend_, chunks);
    for (int shard = 0; shard < shards; ++shard)
      backend_.sum_spans({chunks, rows.spans.row_range(shard * rows.count, rows.count),
                          of_shards_.range(shard * all + first, rows.count)});
    first += rows.count;
  }
  tensor_.sum_over_shards(of_shards_.range(0, shards * all).reshaped({shards, all}), sums_.range(0, all));
  first = 0;
  for (const int unit : units) {
    const Rows& rows = units_.at(unit);
    backend_.sum_spans({sums_.range(first, rows.count), rows.tensors, totals_.range(1, 1)});
    backend_.clip_and_scale({rule, totals_, rows.decision});
    first += rows.count;
  }
}

std::int64_t UnitDecisions::applied(int unit) const {
  const auto found = units_.find(unit);
  if (found == units_.end()) return 0;
  double times = 0;
  backend_.download(found->second.decision.range(Decision::applied_steps, 1), &times);
  return static_cast<std::int64_t>(times);
}

void UnitDecisions::set_applied(int unit, std::int64_t times) {
  const auto found = units_.find(unit);
  if (found == units_.end()) return;
  const auto count = static_cast<double>(times);
  backend_.upload(&count, found->second.decision.range(Decision::applied_steps, 1));
  backend_.synchronize();
}

}  // namespace mindpipe
