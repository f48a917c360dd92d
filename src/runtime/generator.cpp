#include "runtime/generator.h"

#include <algorithm>

#include "config/config.h"
#include "layers/embedding.h"

namespace mindpipe {
namespace {

/// What passes over a whole context need; outputs of all blocks live side by side.
PassFootprint footprint_of(const Config& config, Worker& worker) {
  const Model::Continuation text = worker.stage().model().continuation().value();
  Config whole = config;
  whole.data.sequence = static_cast<int>(text.context);
  return CostModel(whole, make_layout(whole, {})).passes().generation_footprint();
}

}  // namespace

Generator::Generator(const Config& config, Worker& worker)
    : worker_(worker),
      text_(worker.stage().model().continuation().value()),
      caches_(worker.memory(), MemoryClass::activations, worker.stage().model().cache_bytes(1)),
      outputs_(worker.memory(), MemoryClass::activations, footprint_of(config, worker).kept),
      scratch_(worker.memory(), MemoryClass::workspace, footprint_of(config, worker).scratch),
      inputs_(worker.memory(), MemoryClass::boundary,
              bytes_for({text_.context}, DType::i32) +
                  bytes_for({padded_vocabulary(text_.vocabulary, 1)}, DType::f32)),
      tape_(worker.backend(), outputs_, scratch_, &caches_) {
  MP_CHECK(config.reproducible.tensor == 1 && worker.world().size == 1,
           "generation runs on one rank with one logical shard");
  tape_.mode = Tape::Mode::generate;
  tape_.logits = inputs_.take({1, 1, padded_vocabulary(text_.vocabulary, 1)}, DType::f32);
}

std::vector<float> Generator::append(const std::vector<std::int32_t>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  MP_CHECK(count > 0 && tape_.position + count <= text_.context, "{} tokens behind {} in a context of {}",
           count, tape_.position, text_.context);
  const std::size_t inputs = inputs_.mark(), scratch = scratch_.mark();
  const Tensor fed = inputs_.take({1, count}, DType::i32);
  tape_.batch.fields.set(field::tokens, fed);
  tape_.batch.samples = 1;
  worker_.backend().upload(tokens.data(), fed);
  worker_.stage().forward(0, static_cast<int>(worker_.plan().outline.blocks.size()), {}, tape_);
  tape_.clear();
  inputs_.release(inputs);
  scratch_.release(scratch);
  tape_.position += count;
  std::vector<float> logits(tape_.logits.count());
  worker_.backend().download(tape_.logits, logits.data());
  logits.resize(text_.vocabulary);
  return logits;
}

std::vector<float> Generator::follow(const std::vector<std::int32_t>& text) {
  if (position() < text_.context) return append({text.back()});
  restart();
  return append({text.end() - std::min<std::int64_t>(static_cast<std::int64_t>(text.size()),
                                                     std::max<std::int64_t>(1, text_.context / 2)),
                 text.end()});
}

}  // namespace mindpipe
