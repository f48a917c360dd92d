#include "state/stage.h"

#include <algorithm>

namespace mindpipe {
namespace {

std::map<int, std::size_t> bytes_of_statistics(const Model& model,
                                               const std::vector<std::pair<int, int>>& ranges) {
  std::map<int, std::size_t> bytes;
  for (const auto& [first, last] : ranges)
    for (int block = first; block < last; ++block)
      if (const std::size_t some = model.blocks()[block].layer->statistics_bytes(); some > 0)
        bytes[block] = aligned(some);
  return bytes;
}

}  // namespace

Stage::Stage(const Config& config, const Layout& layout, const LayerContext& context,
             std::vector<std::pair<int, int>> ranges, std::vector<std::pair<int, int>> reach)
    : context_(context),
      layout_(layout),
      model_(make_model(config, context)),
      ranges_(std::move(ranges)),
      reach_(reach.empty() ? ranges_ : std::move(reach)) {
  const Communicator& tensor = context.tensor;
  const ShardRange shards{tensor.logical(), tensor.local_shards(), tensor.first_shard()};
  const int sequence_parts = context.sequence_parallel ? tensor.local_shards() : tensor.logical();
  const int levels = layout.data_tree().levels();
  for (auto& unit : model_->units()) unit->lay_out(shards, sequence_parts, levels, context.dtype);
  find_units();
}

void Stage::take(std::vector<std::pair<int, int>> ranges) {
  reach_ = ranges_ = std::move(ranges);
  find_units();
  statistics_.reset();
  allocate_statistics(ranges_);
}

void Stage::find_units() {
  local_units_.clear();
  for (const auto& [first, last] : reach_)
    for (int block = first; block < last; ++block)
      for (int unit : model_->blocks()[block].units) local_units_.push_back(unit);
  std::sort(local_units_.begin(), local_units_.end());
  local_units_.erase(std::unique(local_units_.begin(), local_units_.end()), local_units_.end());
}

bool Stage::has_block(int block) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const auto& range) { return block >= range.first && block < range.second; });
}

bool Stage::counts_here(int unit) const {
  const std::vector<int>& blocks = model_->blocks_of(unit);
  return !blocks.empty() && has_block(blocks.front());
}

void Stage::allocate_statistics(const std::vector<std::pair<int, int>>& ranges) {
  const std::map<int, std::size_t> bytes = bytes_of_statistics(*model_, ranges);
  if (!bytes.empty()) statistics_.emplace(context_.backend.memory(), bytes);
}

std::size_t Stage::statistics_bytes() const {
  std::size_t sum = 0;
  for (const auto& [block, bytes] : bytes_of_statistics(*model_, ranges_)) sum += bytes;
  return sum;
}

Stage::Entering Stage::before(int block) const {
  const int parts = context_.sequence_parallel ? context_.tensor.size() : 1;
  const auto here = [&](const Shape& of_sample) {
    return of_sample.rank == 0 ? Shape{} : Shape{layout_.samples, of_sample[0] / parts, of_sample[1]};
  };
  return {here(model_->before(block)), here(model_->blocks()[block].memory)};
}

Boundary Stage::forward(int first, int last, Boundary in, Tape& tape) {
  Boundary boundary = in;
  Tape::Scope scope(tape);
  Tensor normed;  // unless kept, in one room for all: a block has read it when it makes the next one's
  for (int i = first; i < last; ++i) {
    Model::Block& block = model_->blocks()[i];
    if (!block.reads_encoder()) boundary.encoder_output = {};
    tape.next_norm =
        tape.saves() && i + 1 < last ? model_->blocks()[i + 1].layer->opening_norm(tape) : nullptr;
    if (tape.next_norm != nullptr) {
      const Shape shape = before(i + 1).activation;
      if (context_.keeps_norms()) normed = tape.keep(shape, context_.dtype);
      else if (!normed || normed.shape != shape) normed = tape.scratch(shape, context_.dtype);
      tape.next_normed = normed;
    }
    tape.statistics = statistics_ ? &*statistics_ : nullptr;
    if (statistics_) statistics_->enter(i);
    tape.segments().gives_last(i + 1 == last);
    boundary = block.layer->forward(boundary, tape);
    if (after_block) after_block(i, boundary);
  }
  return boundary;
}

Boundary Stage::backward(int first, int last, Boundary dout, Tape& tape) {
  Boundary boundary = dout;
  for (int i = last - 1; i >= first; --i) {
    Model::Block& block = model_->blocks()[i];
    // The last reader of the memory starts its gradient; it is f32 and grows until the block that made the
    // memory takes it.
    const bool is_last = i + 1 == static_cast<int>(model_->blocks().size());
    const Shape memory = is_last || block.reads_encoder() ? before(i).memory : before(i + 1).memory;
    if (memory.rank > 0 && !boundary.encoder_output) {
      boundary.encoder_output = tape.scratch(memory, DType::f32);
      context_.backend.fill({boundary.encoder_output, 0});
    }
    boundary = block.layer->backward(boundary, tape);
  }
  return boundary;
}

}  // namespace mindpipe
