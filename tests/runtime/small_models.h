#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "config/config.h"
#include "core/random.h"
#include "runtime/worker.h"
#include "text_model.h"

namespace mindpipe {

/// What both styles share: odd widths, a batch of three micro-batches, one thread, AdamW.
inline Config small_config() {
  Config config;
  config.seed = 5;
  config.model.gpt.layers = 2;
  config.model.gpt.width = 48;
  config.model.gpt.heads = 4;
  config.model.gpt.context = 24;
  config.model.gpt.vocabulary = 101;
  config.train.batch = 6;
  config.train.micro_batch = 2;
  config.train.steps = 20;
  config.device.threads = 1;
  return config;
}

/// Learned positions, layer norm, GELU, biases, a tied table.
inline Config gpt2_style() { return small_config(); }

/// Rotary positions, RMS norm, SwiGLU, no biases, a head of its own, two queries to each key.
inline Config llama_style() {
  Config config = small_config();
  become_llama(config);
  config.model.gpt.mlp_width = 112;
  return config;
}

/// Random tokens and targets of some steps, every `ignored`-th target negative (0: none).
struct Batches {
  std::int64_t batch = 0, sequence = 0;
  std::vector<std::int32_t> tokens, targets;  ///< [steps, batch, sequence]

  std::int64_t per_step() const { return batch * sequence; }
};
inline Batches random_batches(const Config& config, int steps, int ignored) {
  Batches batches{config.train.batch, rows_of(config), {}, {}};
  const RandomStream stream{config.seed, purpose_of("batches"), 0, 0};
  const std::int64_t count = steps * batches.per_step();
  // Small ids come more often, so that there is something to learn.
  const auto draw = [&](std::int64_t i) {
    const double u = stream.uniform(i);
    return static_cast<std::int32_t>(u * u * config.model.gpt.vocabulary);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    batches.tokens.push_back(draw(i));
    batches.targets.push_back(ignored > 0 && i % ignored == ignored - 1 ? -1 : draw(count + i));
  }
  return batches;
}

/// Feeds a worker's executor such batches, past any corpus.
class Feeder {
 public:
  Feeder(Worker& worker, const Batches& batches) : worker_(worker), batches_(batches) {
    const Layout& layout = worker.layout();
    const Shape ids{layout.micro_batches(), layout.samples, batches.sequence};
    arena_ = Arena(worker.memory(), MemoryClass::boundary, 2 * bytes_for(ids, DType::i32));
    for (const std::string_view name : {field::tokens, field::targets})
      input_.fields.set(name, arena_.take(ids, DType::i32));
  }

  StepScalars step(int step, double rate) {
    const StepInput& input = load(step, rate);
    const std::optional<StepScalars> at_once = worker_.executor().run(worker_.training(), input);
    return at_once ? *at_once : worker_.remaining().value();
  }
  const StepInput& load(int step, double rate) {
    const std::int32_t *tokens = &batches_.tokens[step * batches_.per_step()],
                       *targets = &batches_.targets[step * batches_.per_step()];
    worker_.backend().upload(tokens, input_.fields.at(field::tokens));
    worker_.backend().upload(targets, input_.fields.at(field::targets));
    input_.valid =
        std::count_if(targets, targets + batches_.per_step(), [](std::int32_t t) { return t >= 0; });
    input_.step = step;
    input_.rate = rate;
    return input_;
  }

 private:
  Worker& worker_;
  const Batches& batches_;
  Arena arena_;
  StepInput input_;
};

}  // namespace mindpipe
