#include "runtime/generator.h"

#include <algorithm>

#include "layers/embedding.h"

namespace mindpipe {
namespace {

/// What passes over a whole context need; outputs of all blocks live side by side.
CostModel::Footprint footprint_of(const Config& config, const Worker& worker) {
  Config whole = config;
  whole.data.sequence = config.model.context;
  CostModel measure(whole, make_layout(whole, {}));
  CostModel::Footprint room =
      measure.evaluation_footprint(0, static_cast<int>(worker.plan().outline.blocks.size()));
  room.scratch += bytes_for({config.model.width},
                            compute_dtype(config));  // the last row, which evaluation does not cut out
  return room;
}

std::size_t cache_bytes(const Config& config) {
  const ModelConfig& m = config.model;
  return bytes_for({m.context, 2 * m.key_value_heads * (m.width / m.heads)}, compute_dtype(config)) *
         m.layers;
}

}  // namespace

Generator::Generator(const Config& config, Worker& worker)
    : worker_(worker),
      vocabulary_(config.model.vocabulary),
      context_(config.model.context),
      caches_(worker.memory(), MemoryClass::activations, cache_bytes(config)),
      outputs_(worker.memory(), MemoryClass::activations, footprint_of(config, worker).kept),
      scratch_(worker.memory(), MemoryClass::workspace, footprint_of(config, worker).scratch),
      inputs_(worker.memory(), MemoryClass::boundary,
              bytes_for({config.model.context}, DType::i32) +
                  bytes_for({padded_vocabulary(config.model.vocabulary, 1)}, DType::f32)),
      tape_(worker.backend(), outputs_, scratch_, &caches_) {
  MP_CHECK(config.reproducible.tensor == 1 && worker.world().size == 1,
           "generation runs on one rank with one logical shard");
  tape_.mode = Tape::Mode::generate;
  tape_.logits = inputs_.take({1, 1, padded_vocabulary(config.model.vocabulary, 1)}, DType::f32);
}

std::vector<float> Generator::append(const std::vector<std::int32_t>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  MP_CHECK(count > 0 && tape_.position + count <= context_, "{} tokens behind {} in a context of {}", count,
           tape_.position, context_);
  const std::size_t inputs = inputs_.mark(), scratch = scratch_.mark();
  tape_.batch.tokens = inputs_.take({1, count}, DType::i32);
  tape_.batch.samples = 1;
  worker_.backend().upload(tokens.data(), tape_.batch.tokens);
  worker_.stage().forward(0, static_cast<int>(worker_.plan().outline.blocks.size()), {}, tape_);
  tape_.clear();
  inputs_.release(inputs);
  scratch_.release(scratch);
  tape_.position += count;
  std::vector<float> logits(tape_.logits.count());
  worker_.backend().download(tape_.logits, logits.data());
  logits.resize(vocabulary_);
  return logits;
}

std::vector<float> Generator::follow(const std::vector<std::int32_t>& text) {
  if (position() < context_) return append({text.back()});
  restart();
  return append({text.end() - std::min<std::int64_t>(static_cast<std::int64_t>(text.size()),
                                                     std::max<std::int64_t>(1, context_ / 2)),
                 text.end()});
}

}  // namespace mindpipe
