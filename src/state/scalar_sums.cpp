#include "state/scalar_sums.h"

#include <algorithm>
#include <limits>

namespace mindpipe {
namespace {

/// What `count` rows of `each` numbers are: begin and end of each.
std::vector<std::pair<std::int64_t, std::int64_t>> rows(std::int64_t count, std::int64_t each) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (std::int64_t i = 0; i < count; ++i) spans.emplace_back(i * each, (i + 1) * each);
  return spans;
}

}  // namespace

std::size_t ScalarCounts::bytes() const {
  std::size_t bytes = 0;
  for (const std::int64_t count :
       {chunks, std::int64_t{micro_batches}, std::int64_t{data_shards}, tensor_shards * tensors, 1 + tensors,
        std::int64_t{2}, std::int64_t{data_shards + Hits::places}, std::int64_t{Decision::places}})
    bytes += bytes_for({count}, DType::f64);
  for (const std::int64_t spans :
       {std::int64_t{micro_batches}, std::int64_t{data_shards}, tensor_shards * tensors, std::int64_t{2}})
    bytes += bytes_for({spans, 2}, DType::i32);
  return bytes;
}

std::size_t ScalarCounts::tensor_exchange() const {
  return Communicator::scalars_bytes(SumTree(tensor_shards * tensor_ranks, tensor_ranks), tensors);
}

std::size_t ScalarCounts::data_exchange() const {
  return std::max(Communicator::scalars_bytes(SumTree(data_shards * data_ranks, data_ranks), 1),
                  Communicator::scalars_bytes(SumTree(data_ranks, data_ranks), sharded ? chunks : 1));
}

std::size_t ScalarCounts::pipeline_exchange() const {
  return Communicator::scalars_bytes(SumTree(pipeline_ranks, pipeline_ranks), 1 + tensors);
}

ScalarCounts scalar_counts(const Layout& layout, const Model& model, std::int64_t chunks, bool sharded,
                           bool trains) {
  ScalarCounts counts;
  counts.chunks = chunks;
  counts.sharded = sharded;
  for (const auto& unit : model.units())
    if (trains) counts.tensors += static_cast<std::int64_t>(unit->params().size());
  counts.micro_batches = layout.micro_batches();
  counts.data_shards = layout.local_data_shards();
  counts.tensor_shards = layout.tensor_shards / layout.grid.tensor;
  counts.data_ranks = layout.grid.data;
  counts.tensor_ranks = layout.grid.tensor;
  counts.pipeline_ranks = layout.grid.pipeline;
  return counts;
}

ScalarSums::ScalarSums(Stage& stage, Groups groups, const Optimizers& optimizers, bool sharded, bool trains)
    : stage_(stage), groups_(groups) {
  std::int64_t chunks = 0;
  for (const auto& [unit, optimizer] : optimizers) chunks += optimizer->chunks();
  const Layout& layout = stage.layout();
  counts_ = scalar_counts(layout, stage.model(), chunks, sharded, trains);
  Backend& backend = stage.context().backend;
  arena_ = Arena(backend.memory(), MemoryClass::workspace, counts_.bytes());
  chunks_ = arena_.take({chunks}, DType::f64);
  of_micro_batches_ = arena_.take({counts_.micro_batches}, DType::f64);
  of_data_shards_ = arena_.take({counts_.data_shards}, DType::f64);
  of_tensor_shards_ = arena_.take({counts_.tensor_shards * counts_.tensors}, DType::f64);
  sums_ = arena_.take({1 + counts_.tensors}, DType::f64);
  totals_ = arena_.take({2}, DType::f64);
  evaluation_ = arena_.take({counts_.data_shards + Hits::places}, DType::f64);
  decision_ = arena_.take({Decision::places}, DType::f64);
  backend.fill({decision_, 0});
  begin_evaluation();

  loss_spans_ = take_spans(rows(counts_.micro_batches, layout.samples * stage.model().targets_per_sample()));
  shard_spans_ = take_spans(rows(counts_.data_shards, counts_.micro_batches / counts_.data_shards));
  total_spans_ = take_spans({{0, 1}, {1, 1 + counts_.tensors}});
  std::vector<std::pair<std::int64_t, std::int64_t>> of_tensors(counts_.tensor_shards * counts_.tensors);
  std::int64_t tensor = 0, first_chunk = 0;
  for (int u = 0; u < static_cast<int>(stage.model().units().size()); ++u) {
    const Unit& unit = *stage.model().units()[u];
    const int params = static_cast<int>(unit.params().size());
    const auto optimizer = optimizers.find(u);
    for (int p = 0; p < params && optimizer != optimizers.end() && stage.counts_here(u); ++p) {
      // What every tensor rank holds alike is counted by the first.
      if (unit.params()[p].split == Split::none && groups.tensor.rank() != 0) continue;
      for (int s = 0; s < unit.local_shards(p); ++s) {
        const auto [begin, end] = optimizer->second->chunks_of_shard(p, s);
        of_tensors[s * counts_.tensors + tensor + p] = {first_chunk + begin, first_chunk + end};
      }
    }
    tensor += params;
    if (optimizer != optimizers.end()) first_chunk += optimizer->second->chunks();
  }
  tensor_spans_ = take_spans(of_tensors);
}

Tensor ScalarSums::take_spans(const std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
  std::vector<std::int32_t> numbers;
  for (const auto& [begin, end] : spans) {
    MP_CHECK(end <= std::numeric_limits<std::int32_t>::max(), "a step's scalars are sums of {} numbers", end);
    numbers.push_back(static_cast<std::int32_t>(begin));
    numbers.push_back(static_cast<std::int32_t>(end));
  }
  const Tensor table = arena_.take({static_cast<std::int64_t>(spans.size()), 2}, DType::i32);
  stage_.context().backend.upload(numbers.data(), table);
  return table;
}

void ScalarSums::run(const Optimizers& optimizers, const Tensor& losses, const StepRule& rule) {
  Backend& backend = stage_.context().backend;
  sum_losses_over_data(losses, sums_.range(0, 1));
  sum_squares(optimizers);
  groups_.pipeline.sum_over_ranks(sums_);
  backend.sum_spans({sums_, total_spans_, totals_});
  backend.clip_and_scale({rule, totals_, decision_});
}

/// Micro-batches in order, those of each data shard.
void ScalarSums::sum_losses(const Tensor& losses, const Tensor& of_data_shards) {
  Backend& backend = stage_.context().backend;
  backend.sum_spans({losses, loss_spans_, of_micro_batches_});
  backend.sum_spans({of_micro_batches_, shard_spans_, of_data_shards});
}

/// Then the tree over data shards; a stage without the head adds nothing.
void ScalarSums::sum_losses_over_data(const Tensor& losses, const Tensor& sum) {
  Backend& backend = stage_.context().backend;
  if (losses) sum_losses(losses, of_data_shards_);
  else backend.fill({of_data_shards_, 0});
  groups_.data.sum_over_shards(of_data_shards_, sum);
}

void ScalarSums::begin_evaluation() { stage_.context().backend.fill({evaluation_, 0}); }

const Tensor& ScalarSums::evaluated(const Tensor& losses) {
  sum_losses(losses, evaluation_.range(0, counts_.data_shards));
  return evaluation_;
}

/// Chunks of a tensor's shard in order, then the tree over shards: one number for each tensor of the whole
/// model.
void ScalarSums::sum_squares(const Optimizers& optimizers) {
  Backend& backend = stage_.context().backend;
  if (counts_.sharded) backend.fill({chunks_, 0});
  std::int64_t first = 0;
  for (const auto& [unit, optimizer] : optimizers) {
    optimizer->chunk_squares(backend, chunks_.range(first, optimizer->chunks()));
    first += optimizer->chunks();
  }
  if (counts_.sharded) groups_.data.sum_over_ranks(chunks_);
  backend.sum_spans({chunks_, tensor_spans_, of_tensor_shards_});
  groups_.tensor.sum_over_shards(of_tensor_shards_, sums_.range(1, counts_.tensors));
}

}  // namespace mindpipe
