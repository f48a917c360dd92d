#include "runtime/generator.h"

#include "layers/embedding.h"

namespace mindpipe {
namespace {

struct Sizes {
  std::size_t caches, scratch;
};

/// Bytes for the caches of all layers and for the passes over a whole context, with room to spare: outputs of all blocks live side by side.
Sizes sizes_of(const Config& config, const Worker& worker) {
  Config whole = config;
  whole.data.sequence = config.model.context;
  const auto blocks = static_cast<int>(worker.plan().outline.blocks.size());
  Measure measure(whole, make_layout(whole, {}));
  const Measure::Room room = measure.evaluation_room(0, blocks);
  const std::size_t element = bytes_of(compute_dtype(config)), key_value_width = static_cast<std::size_t>(2 * config.model.key_value_heads) * config.model.width / config.model.heads;
  const std::size_t one_cache = aligned(key_value_width * config.model.context * element);
  return {one_cache * config.model.layers + room.kept, room.scratch + one_cache + aligned(config.model.width * element)};
}

}  // namespace

Generator::Generator(const Config& config, Worker& worker)
    : worker_(worker),
      vocabulary_(config.model.vocabulary),
      caches_(worker.memory(), MemoryClass::activations, sizes_of(config, worker).caches),
      scratch_(worker.memory(), MemoryClass::workspace, sizes_of(config, worker).scratch),
      inputs_(worker.memory(), MemoryClass::boundary,
              bytes_for({config.model.context}, DType::i32) + bytes_for({padded_vocabulary(config.model.vocabulary, 1)}, DType::f32)),
      tape_(worker.backend(), caches_, scratch_) {
  tape_.mode = Tape::Mode::generate;
  tape_.logits = inputs_.take({1, 1, padded_vocabulary(config.model.vocabulary, 1)}, DType::f32);
}

void Generator::restart() {
  tape_.clear();
  tape_.position = 0;
}

std::vector<float> Generator::append(const std::vector<std::int32_t>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::size_t inputs = inputs_.mark(), scratch = scratch_.mark();
  tape_.batch.tokens = inputs_.take({1, count}, DType::i32);
  tape_.batch.samples = 1;
  worker_.backend().upload(tokens.data(), tape_.batch.tokens);
  const auto blocks = static_cast<int>(worker_.plan().outline.blocks.size());
  // Outputs are needed for this call only, caches for all: the first call lays the caches between outputs, so only later calls give back.
  const bool first = tape_.position == 0;
  const std::size_t kept = tape_.kept_mark();
  worker_.stage().forward(0, blocks, {}, tape_);
  if (!first) tape_.release_kept(kept);
  inputs_.release(inputs);
  scratch_.release(scratch);
  tape_.position += count;
  std::vector<float> logits(tape_.logits.count());
  worker_.backend().download(tape_.logits, logits.data());
  logits.resize(vocabulary_);
  return logits;
}

}  // namespace mindpipe
