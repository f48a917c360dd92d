#include "state/loss_sums.h"

#include <limits>

namespace mindpipe {
namespace {

/// What `count` rows of `each` numbers are: begin and end of each.
Spans rows(std::int64_t count, std::int64_t each) {
  Spans spans;
  for (std::int64_t i = 0; i < count; ++i) spans.emplace_back(i * each, (i + 1) * each);
  return spans;
}

}  // namespace

Tensor take_spans(Backend& backend, Arena& arena, const Spans& spans) {
  std::vector<std::int32_t> numbers;
  for (const auto& [begin, end] : spans) {
    MP_CHECK(end <= std::numeric_limits<std::int32_t>::max(), "a sum of scalars ends at number {}", end);
    numbers.push_back(static_cast<std::int32_t>(begin));
    numbers.push_back(static_cast<std::int32_t>(end));
  }
  const Tensor table = arena.take({std::ssize(spans), 2}, DType::i32);
  if (!spans.empty()) backend.upload(numbers.data(), table);
  return table;
}

std::size_t LossSums::bytes(const Layout& layout) {
  const std::int64_t micro_batches = layout.micro_batches(), shards = layout.local_data_shards();
  return bytes_for({micro_batches}, DType::f64) + bytes_for({shards}, DType::f64) +
         bytes_for({shards + Hits::places}, DType::f64) + bytes_for({micro_batches, 2}, DType::i32) +
         bytes_for({shards, 2}, DType::i32);
}

std::int64_t targets_of_step(const Stage& stage) {
  return stage.layout().batch * stage.model().targets_per_sample();
}

Shape losses_shape(const Stage& stage) {
  const Layout& layout = stage.layout();
  return {layout.micro_batches(), layout.samples, stage.model().targets_per_sample()};
}

LossSums::LossSums(Stage& stage, Communicator& data)
    : backend_(stage.context().backend),
      data_(data),
      arena_(backend_.memory(), MemoryClass::workspace, bytes(stage.layout())) {
  const Layout& layout = stage.layout();
  const std::int64_t micro_batches = layout.micro_batches(), shards = layout.local_data_shards();
  of_micro_batches_ = arena_.take({micro_batches}, DType::f64);
  of_data_shards_ = arena_.take({shards}, DType::f64);
  evaluation_ = arena_.take({shards + Hits::places}, DType::f64);
  loss_spans_ =
      take_spans(backend_, arena_, rows(micro_batches, layout.samples * stage.model().targets_per_sample()));
  shard_spans_ = take_spans(backend_, arena_, rows(shards, micro_batches / shards));
  begin_evaluation();
}

/// Micro-batches in order, those of each data shard.
void LossSums::sum_shards(const Tensor& losses, const Tensor& of_data_shards) {
  backend_.sum_spans({losses, loss_spans_, of_micro_batches_});
  backend_.sum_spans({of_micro_batches_, shard_spans_, of_data_shards});
}

/// Then the tree over data shards; a stage without the head adds nothing.
void LossSums::sum_over_data(const Tensor& losses, const Tensor& sum) {
  if (losses) sum_shards(losses, of_data_shards_);
  else backend_.fill({of_data_shards_, 0});
  data_.sum_over_shards(of_data_shards_, sum);
}

const Tensor& LossSums::evaluated(const Tensor& losses) {
  sum_shards(losses, evaluation_.range(0, of_data_shards_.count()));
  return evaluation_;
}

}  // namespace mindpipe
