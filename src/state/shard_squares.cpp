#include "state/shard_squares.h"

#include "config/sections/train.h"

namespace mindpipe {
namespace {

std::int64_t rows_of(const SquaresSize& size) { return size.shards + 1; }

}  // namespace

std::optional<SquaresSize> squares_size(const TrainConfig& train, DeviceKind device, const Layout& layout,
                                        const Model& model, const Optimizers& here) {
  if (train.noise_every == 0 || layout.data_shards == 1 || !row_of(device).computes) return std::nullopt;
  SquaresSize size{.shards = layout.local_data_shards()};
  for (const auto& unit : model.units()) size.tensors += unit->uses() * std::ssize(unit->params());
  for (const auto& [unit, optimizer] : here)
    size.chunks += optimizer->unit().uses() * optimizer->flat().chunks();
  return size;
}

std::size_t ShardSquares::bytes(const SquaresSize& size, const Layout& layout) {
  const std::int64_t rows = rows_of(size), shards = layout.tensor_shards / layout.grid.tensor;
  std::size_t bytes = 0;
  for (const std::int64_t count : {size.chunks, shards * rows * size.tensors, rows * size.tensors, rows,
                                   std::int64_t{layout.data_shards} + 1})
    bytes += bytes_for({count}, DType::f64);
  return bytes + bytes_for({shards * size.tensors, 2}, DType::i32) + bytes_for({rows, 2}, DType::i32);
}

ShardSquares::ShardSquares(Stage& stage, const Optimizers& optimizers, Groups groups, const SquaresSize& size,
                           bool sharded)
    : stage_(stage), optimizers_(optimizers), groups_(groups), size_(size), sharded_(sharded) {
  Backend& backend = stage.context().backend;
  const std::int64_t rows = rows_of(size), shards = groups.tensor.local_shards();
  arena_ = Arena(backend.memory(), MemoryClass::workspace, bytes(size, stage.layout()));
  chunks_ = arena_.take({size.chunks}, DType::f64);
  squares_ = arena_.take({shards * rows * size.tensors}, DType::f64);
  sums_ = arena_.take({rows * size.tensors}, DType::f64);
  of_rows_ = arena_.take({rows}, DType::f64);
  of_shards_ = arena_.take({stage.layout().data_shards + 1}, DType::f64);
  Spans spans;
  for (std::int64_t i = 0; i < rows; ++i) spans.emplace_back(i * size.tensors, (i + 1) * size.tensors);
  row_spans_ = take_spans(backend, arena_, spans);
  take_spans_of_chunks();
}

void ShardSquares::take_spans_of_chunks() {
  const auto& blocks = stage_.model().blocks();
  for (int block = 0; block < std::ssize(blocks); ++block)
    for (const int unit : blocks[block].units)
      if (stage_.has_block(block)) uses_.push_back({unit, block});
  std::int64_t chunks = 0, tensors = 0;
  for (const auto& [unit, optimizer] : optimizers_) {
    first_chunk_[unit] = chunks;
    chunks += optimizer->unit().uses() * optimizer->flat().chunks();
  }
  for (const auto& unit : stage_.model().units()) {
    first_tensor_.push_back(tensors);
    tensors += unit->uses() * std::ssize(unit->params());
  }
  Spans spans(groups_.tensor.local_shards() * size_.tensors);
  for (const UnitUse& use : uses_)
    set_spans(spans, *optimizers_.at(use.unit), groups_.tensor.rank(), size_.tensors, first_chunk_of(use),
              tensor_of(use, 0));
  spans_ = take_spans(stage_.context().backend, arena_, spans);
}

std::int64_t ShardSquares::first_chunk_of(const UnitUse& use) const {
  return first_chunk_.at(use.unit) + stage_.use_of(use) * optimizers_.at(use.unit)->flat().chunks();
}

std::int64_t ShardSquares::tensor_of(const UnitUse& use, int param) const {
  return first_tensor_[use.unit] + stage_.use_of(use) * std::ssize(stage_.unit(use.unit).params()) + param;
}

Tensor ShardSquares::chunks_of(const UnitUse& use) const {
  return chunks_.range(first_chunk_of(use), optimizers_.at(use.unit)->flat().chunks());
}

Tensor ShardSquares::row(int tensor_shard, std::int64_t row) const {
  return squares_.range((tensor_shard * rows_of(size_) + row) * size_.tensors, size_.tensors);
}

Tensor ShardSquares::span(int tensor_shard, std::int64_t tensor) const {
  return spans_.row_range(tensor_shard * size_.tensors + tensor, 1);
}

void ShardSquares::begin() {
  Backend& backend = stage_.context().backend;
  backend.fill({chunks_, 0});
  backend.fill({squares_, 0});
  backend.fill({of_shards_, 0});
}

void ShardSquares::add(const UnitUse& use, int param, int shard) {
  Unit& unit = stage_.unit(use.unit);
  if (!unit.params()[param].is_learned()) return;
  Backend& backend = stage_.context().backend;
  const UnitOptimizer& optimizer = *optimizers_.at(use.unit);
  const std::int64_t elements = unit.shard_shape(param).count(), tensor = tensor_of(use, param);
  const Tensor root = unit.gradients().root(stage_.use_of(use));
  for (int part = 0; part < unit.local_shards(param); ++part) {
    const auto [begin, end] = optimizer.flat().chunks_of_shard(param, part);
    backend.sum_squares(
        {root.range(unit.flat_offset(param, part), elements), chunks_of(use).range(begin, end - begin)});
    backend.sum_spans({chunks_, span(part, tensor), row(part, shard).range(tensor, 1)});
  }
}

const Tensor& ShardSquares::finish() {
  Backend& backend = stage_.context().backend;
  if (sharded_) backend.fill({chunks_, 0});
  for (const UnitUse& use : uses_)
    optimizers_.at(use.unit)->chunk_squares(backend, chunks_of(use), stage_.use_of(use));
  if (sharded_) groups_.data.sum_over_ranks(chunks_);
  const int shards = groups_.tensor.local_shards();
  for (int shard = 0; shard < shards; ++shard)
    backend.sum_spans(
        {chunks_, spans_.row_range(shard * size_.tensors, size_.tensors), row(shard, size_.shards)});
  groups_.tensor.sum_over_shards(squares_.reshaped({shards, sums_.count()}), sums_);
  groups_.pipeline.sum_over_ranks(sums_);
  backend.sum_spans({sums_, row_spans_, of_rows_});
  const std::int64_t all = of_shards_.count() - 1;
  backend.copy(of_rows_.range(0, size_.shards),
               of_shards_.range(groups_.data.rank() * size_.shards, size_.shards));
  groups_.data.sum_over_ranks(of_shards_.range(0, all));
  backend.copy(of_rows_.range(size_.shards, 1), of_shards_.range(all, 1));
  return of_shards_;
}

}  // namespace mindpipe
