#pragma once
#include <cmath>
#include <string>

#include "runtime/worker.h"
#include "text_model.h"

namespace mindpipe {

inline BytesByClass used_by(const Memory& memory) {
  BytesByClass bytes{};
  for (MemoryClass kind : memory_classes)
    bytes[static_cast<int>(kind)] = static_cast<std::int64_t>(memory.used(kind));
  return bytes;
}

/// Where a prediction is more than 5 % from what was used: of the total, and of each class that is at least a
/// hundredth of it. Empty: nowhere.
inline std::string complaint(const BytesByClass& predicted, const BytesByClass& used) {
  std::string text;
  const auto compare = [&](std::string_view name, std::int64_t expected, std::int64_t seen) {
    if (std::abs(static_cast<double>(seen) / static_cast<double>(expected) - 1) > 0.05)
      text += fmt::format("{}: {} bytes used, {} predicted; ", name, seen, expected);
  };
  for (MemoryClass kind : memory_classes) {
    const int i = static_cast<int>(kind);
    if (std::max(predicted[i], used[i]) * 100 >= total_of(used))
      compare(name_of(kind), predicted[i], used[i]);
  }
  compare("total", total_of(predicted), total_of(used));
  return text;
}

/// The plan with `factor` times the room in every arena whose size is a prediction. (Those of units and
/// inputs are laid out, not predicted. Tapes have rooms of one slab, and refuse what their rooms do not
/// hold.)
inline RunPlan with_more_memory(RunPlan plan, double factor) {
  const auto grow = [&](auto& bytes) {
    bytes = static_cast<std::decay_t<decltype(bytes)>>(
        aligned(static_cast<std::size_t>(static_cast<double>(bytes) * factor)));
  };
  for (RankFootprint& footprint : plan.footprints) {
    for (std::size_t& buffer : footprint.buffers) grow(buffer);
    for (std::size_t* bytes : {&footprint.passes.scratch, &footprint.passes.exchange, &footprint.passes.zeros,
                               &footprint.passes.backend.products, &footprint.passes.backend.attention,
                               &footprint.passes.backend.rotary})
      grow(*bytes);
    for (std::size_t& bytes : footprint.reduction) grow(bytes);
  }
  return plan;
}

/// Some steps, an evaluation, the weights on their way to a file, and their digest: all that a training run
/// does.
inline void train_a_little(Worker& worker, int steps = 3) {
  const Config& config = worker.config();
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  for (int step = 0; step < steps; ++step)
    worker.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, 1e-3);
  worker.evaluator().evaluate(corpus, 1);
  worker.state().gather_weights([](const std::byte*, std::size_t) {});
  worker.state().digest();
}

/// Attention and MLP have one size, so that both parts of a sum over data that may be on their way come to be
/// the largest, however they overlap.
inline Config small_run() {
  Config config;
  config.run.dir = "unused";
  config.model.gpt.layers = 4;
  config.model.gpt.width = 128;
  config.model.gpt.mlp_width = 256;
  config.model.gpt.heads = 4;
  config.model.gpt.context = 64;
  config.model.gpt.vocabulary = 300;
  config.data.train = {{"synthetic:arithmetic", 1}};
  config.train.batch = 8;
  config.train.micro_batch = 2;
  config.train.steps = 3;
  config.model.gpt.dropout = config.model.gpt.attention_dropout = 0.1;
  config.device.threads = 1;
  return config;
}

inline Config llama_run() {
  Config config = small_run();
  become_llama(config);
  config.train.precision = Precision::bf16;
  return config;
}

inline Config bert_run() {
  Config config = small_run();
  static_cast<TextSettings&>(config.model.bert) = config.model.gpt;
  config.model.kind = ModelKind::bert;
  return config;
}

/// An encoder-decoder whose sources are longer than its targets, with a decoder layer more than the encoder
/// has.
inline Config post_norm_run() {
  Config config = small_run();
  transformer::Settings& m = config.model.transformer;
  static_cast<TextSettings&>(m) = config.model.gpt;
  config.model.kind = ModelKind::transformer;
  m.tables = Tables::two;
  m.layers = 2;
  m.decoder_layers = 3;
  config.data.source_sequence = 64;
  config.data.target_sequence = 32;
  config.data.train = {{"synthetic:dates", 1}};
  return config;
}

/// Pictures of 65 rows, which no two shards divide.
inline Config vit_run() {
  Config config = small_run();
  vit::Settings& m = config.model.vit;
  static_cast<BlockSettings&>(m) = config.model.gpt;
  config.model.kind = ModelKind::vit;
  m.picture_height = m.picture_width = 32;
  m.patch = 4;
  m.classes = 10;
  config.data.train = {{"synthetic:shapes", 1}};
  return config;
}

}  // namespace mindpipe
