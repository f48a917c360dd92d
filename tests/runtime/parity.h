#pragma once
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/random.h"
#include "runtime/worker.h"

namespace mindpipe {

/// What a run of some steps leaves behind, in full precision: equal on every layout, or something is wrong.
struct Outcome {
  std::vector<double> losses, norms;
  double evaluation = 0;       ///< the sum of its losses
  std::int64_t evaluated = 0;  ///< targets that it counted
  Sha256::Digest state{};      ///< of all weights and optimizer state

  static constexpr std::size_t digest_words = sizeof(Sha256::Digest) / sizeof(std::uint64_t);
  static std::size_t words_of(int steps) { return digest_words + 2 + 2 * static_cast<std::size_t>(steps); }
  std::vector<std::uint64_t> words() const {
    const auto digest = std::bit_cast<std::array<std::uint64_t, digest_words>>(state);
    std::vector<std::uint64_t> all(digest.begin(), digest.end());
    all.push_back(std::bit_cast<std::uint64_t>(evaluation));
    for (double x : losses) all.push_back(std::bit_cast<std::uint64_t>(x));
    for (double x : norms) all.push_back(std::bit_cast<std::uint64_t>(x));
    all.push_back(static_cast<std::uint64_t>(evaluated));
    return all;
  }
  static Outcome from(const std::vector<std::uint64_t>& words) {
    Outcome outcome;
    std::memcpy(outcome.state.data(), words.data(), outcome.state.size());
    outcome.evaluation = std::bit_cast<double>(words[digest_words]);
    const std::size_t before = digest_words + 1, steps = (words.size() - before - 1) / 2;
    for (std::size_t i = 0; i < steps; ++i) {
      outcome.losses.push_back(std::bit_cast<double>(words[before + i]));
      outcome.norms.push_back(std::bit_cast<double>(words[before + steps + i]));
    }
    outcome.evaluated = static_cast<std::int64_t>(words.back());
    return outcome;
  }
};

/// Where two outcomes differ first, as text; empty when every bit is the same.
inline std::string difference(const Outcome& got, const Outcome& wanted) {
  const auto same = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  };
  for (std::size_t i = 0; i < wanted.losses.size(); ++i) {
    if (!same(got.losses[i], wanted.losses[i]))
      return fmt::format("loss of step {}: {} and not {}", i, got.losses[i], wanted.losses[i]);
    if (!same(got.norms[i], wanted.norms[i]))
      return fmt::format("gradient norm of step {}: {} and not {}", i, got.norms[i], wanted.norms[i]);
  }
  if (!same(got.evaluation, wanted.evaluation))
    return fmt::format("evaluation: {} and not {}", got.evaluation, wanted.evaluation);
  if (got.evaluated != wanted.evaluated)
    return fmt::format("evaluation: {} targets and not {}", got.evaluated, wanted.evaluated);
  if (got.state != wanted.state)
    return fmt::format("SHA-256 of weights and state: {} and not {}", to_string(got.state),
                       to_string(wanted.state));
  return {};
}

/// Samples that are a function of (step, place in the batch): unequal numbers of targets that count, one
/// sample without any, one whose source is all padding.
class Feed {
 public:
  /// `device`: where the samples have to lie, if not in the host's memory.
  Feed(const Config& config, const Layout& layout, Backend* device = nullptr)
      : vocabulary_(config.model.vocabulary),
        translator_(row_of(config.model.kind).has_source),
        layout_(layout),
        device_(device),
        arena_(memory_, MemoryClass::boundary, static_cast<std::size_t>(input_bytes(config, layout))) {
    take(arena_, drawn_);
    if (device_ != nullptr) device_arena_ = Arena(device_->memory(), MemoryClass::boundary, arena_.size());
    if (device_ != nullptr) take(device_arena_, input_);
    else input_ = drawn_;
  }

  const StepInput& at(int step) {
    const std::int64_t q = layout_.sequence,
                       samples = static_cast<std::int64_t>(layout_.micro_batches()) * layout_.samples;
    input_.valid = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const std::int64_t sample = layout_.first_sample(0) + i;
      const RandomStream stream{7, purpose_of("feed"), static_cast<std::uint32_t>(step),
                                static_cast<std::uint32_t>(sample)};
      const auto token = [&](std::int64_t at) {
        return static_cast<std::int32_t>(stream.word(at) % vocabulary_);
      };
      const std::int64_t ignored = sample % 4 == 1 ? q : stream.word(1000) % q;
      for (std::int64_t j = 0; j < q; ++j) {
        drawn_.tokens.as<std::int32_t>()[i * q + j] = token(j);
        drawn_.targets.as<std::int32_t>()[i * q + j] = j < ignored ? -1 : token(j + 1);
        if (translator_) drawn_.source.as<std::int32_t>()[i * q + j] = token(2000 + j);
      }
      input_.valid += q - ignored;
      if (translator_)
        drawn_.source_lengths.as<std::int32_t>()[i] =
            sample % 3 == 2 ? 0 : static_cast<std::int32_t>(1 + stream.word(3000) % q);
    }
    if (device_ != nullptr)
      for (auto tensor :
           {&StepInput::tokens, &StepInput::targets, &StepInput::source, &StepInput::source_lengths})
        if (drawn_.*tensor) device_->upload((drawn_.*tensor).data, input_.*tensor);
    input_.step = step;
    input_.rate = 0.01 / (1 + step);
    return input_;
  }

 private:
  void take(Arena& arena, StepInput& to) const {
    const Shape ids{layout_.micro_batches(), layout_.samples, layout_.sequence};
    to.tokens = arena.take(ids, DType::i32);
    to.targets = arena.take(ids, DType::i32);
    if (!translator_) return;
    to.source = arena.take(ids, DType::i32);
    to.source_lengths = arena.take({layout_.micro_batches(), layout_.samples}, DType::i32);
  }

  std::int64_t vocabulary_;
  bool translator_;
  Layout layout_;
  Backend* device_;
  Memory memory_{Memory::Kind::host};
  Arena arena_, device_arena_;
  StepInput drawn_, input_;  ///< the same tensors where there is no device
};

/// Some steps of a worker, then an evaluation: the same loop for one rank and for many. `before` is told each
/// step.
inline void train_some(Worker& worker, int steps, Outcome& outcome,
                       const std::function<void(int)>& before = {}) {
  Feed feed(worker.config(), worker.layout(), worker.backend().host_may_read() ? nullptr : &worker.backend());
  const auto keep = [&](const std::optional<StepScalars>& known) {
    if (!known) return;
    MP_CHECK(known->step == static_cast<std::int64_t>(outcome.losses.size()),
             "step {} is answered as number {}", known->step, outcome.losses.size());
    outcome.losses.push_back(known->loss);
    outcome.norms.push_back(known->gradient_norm);
  };
  for (int step = 0; step < steps; ++step) {
    if (before) before(step);
    const StepInput& input = feed.at(step);
    const Memory::Closed closed(worker.memory());
    keep(worker.executor().run(worker.training(), input));
  }
  keep(worker.remaining());
  const StepInput& input = feed.at(steps);
  const std::optional<StepScalars> at_once = worker.executor().run(worker.evaluation(), input);
  const StepScalars scalars = at_once ? *at_once : worker.evaluation().answers.oldest().value();
  outcome.evaluation = scalars.loss;
  outcome.evaluated = scalars.valid;
}

/// More ranks than processors, and hardly anything to compute: who waits gives way at once.
inline void share_processors(Worker& worker) {
  worker.waiting().set_crowded(true);
  worker.waiting().set_patience(10, 200);
}

inline Outcome outcome_of(const Config& config, const World& world, int steps) {
  Worker worker(config, world);
  share_processors(worker);
  Outcome outcome;
  train_some(worker, steps, outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

enum class Style { gpt2, llama, translator };
inline const char* name_of(Style style) {
  return style == Style::gpt2 ? "gpt2" : style == Style::llama ? "llama" : "translator";
}

/// What MINDPIPE_TEST_DEVICE names: cpu, or cuda to try several ranks on a GPU that they share.
inline DeviceKind device_of_tests() {
  const char* named = std::getenv("MINDPIPE_TEST_DEVICE");
  return named == nullptr ? DeviceKind::cpu : kind_named<DeviceKind>(named).value();
}
/// MINDPIPE_STEPS, or the usual number.
inline int steps_of_tests(int usual) {
  const char* wished = std::getenv("MINDPIPE_STEPS");
  return wished == nullptr ? usual : std::max(1, std::atoi(wished));
}

/// A tiny model with dropout everywhere, for `tensor` x `data` logical shards; at least `blocks` blocks.
inline Config tiny(Style style, int tensor, int data, int of_shard = 1, int blocks = 8) {
  const bool three = tensor % 3 == 0;
  Config c;
  c.seed = 11;
  c.model.kind = style == Style::translator ? ModelKind::translator : ModelKind::gpt;
  c.model.width = tensor == 6 ? 48 : three ? 36 : 32;
  c.model.heads = tensor == 6 ? 12 : three ? 6 : tensor == 8 ? 16 : 8;
  c.model.key_value_heads = style == Style::llama ? c.model.heads / 2 : 0;
  c.model.mlp_width = three ? 72 : 64;
  c.model.layers =
      style == Style::translator ? std::max(1, (blocks - 3 + 4) / 5) : std::max(1, (blocks - 2 + 1) / 2);
  c.model.vocabulary = 101;
  c.model.context = three ? 24 : 16;
  c.data.sequence = three ? 12 : 16;
  c.model.dropout = 0.1;
  c.model.attention_dropout = 0.2;
  c.model.initial_deviation = 0.2;
  if (style == Style::llama) {
    c.model.positions = Positions::rotary;
    c.model.norm = ModelNorm::rms;
    c.model.mlp = MlpKind::swiglu;
    c.model.bias = false;
    c.model.tied = false;
  }
  c.reproducible = {tensor, data};
  c.train.micro_batch = 2;
  c.train.batch = 2 * of_shard * data;
  c.train.clip = 0.5;
  c.train.label_smoothing = 0.1;
  c.device.kind = device_of_tests();
  if (c.device.kind == DeviceKind::cuda)
    c.model.width = 8 * c.model.heads;  // what its libraries take, and need not leave to our own kernels
  c.device.threads = 1;
  return c;
}

}  // namespace mindpipe
