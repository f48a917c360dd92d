#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/ranges.h>
#include "core/random.h"
#include "runtime/styles.h"
#include "runtime/worker.h"

namespace mindpipe {

/// What a run of some steps leaves behind, in full precision: equal on every layout, or something is wrong.
struct Outcome {
  std::vector<double> losses, norms;
  std::vector<double> noise;   ///< signal and noise of each step's gradient; empty: nobody looked
  double evaluation = 0;       ///< the sum of its losses
  std::int64_t evaluated = 0;  ///< targets that it counted
  std::array<std::int64_t, Hits::places> hits{};
  Sha256::Digest state{};  ///< digest of all weights and optimizer state

  static constexpr std::size_t digest_words = sizeof(Sha256::Digest) / sizeof(std::uint64_t);
  static std::size_t words_of(int steps) {
    return digest_words + 2 + Hits::places + 4 * static_cast<std::size_t>(steps);
  }
  std::vector<std::uint64_t> words() const {
    const auto digest = std::bit_cast<std::array<std::uint64_t, digest_words>>(state);
    std::vector<std::uint64_t> all(digest.begin(), digest.end());
    all.push_back(std::bit_cast<std::uint64_t>(evaluation));
    for (double x : losses) all.push_back(std::bit_cast<std::uint64_t>(x));
    for (double x : norms) all.push_back(std::bit_cast<std::uint64_t>(x));
    for (std::int64_t hit : hits) all.push_back(static_cast<std::uint64_t>(hit));
    all.push_back(static_cast<std::uint64_t>(evaluated));
    for (std::size_t i = 0; i < 2 * losses.size(); ++i)
      all.push_back(std::bit_cast<std::uint64_t>(i < noise.size() ? noise[i] : 0.0));
    return all;
  }
  static Outcome from(const std::vector<std::uint64_t>& words) {
    Outcome outcome;
    std::memcpy(outcome.state.data(), words.data(), outcome.state.size());
    outcome.evaluation = std::bit_cast<double>(words[digest_words]);
    const std::size_t before = digest_words + 1, steps = (words.size() - before - 1 - Hits::places) / 4;
    for (std::size_t i = 0; i < steps; ++i) {
      outcome.losses.push_back(std::bit_cast<double>(words[before + i]));
      outcome.norms.push_back(std::bit_cast<double>(words[before + steps + i]));
    }
    for (std::size_t i = 0; i < outcome.hits.size(); ++i)
      outcome.hits[i] = static_cast<std::int64_t>(words[before + 2 * steps + i]);
    const std::size_t behind = before + 2 * steps + Hits::places;
    outcome.evaluated = static_cast<std::int64_t>(words[behind]);
    for (std::size_t i = behind + 1; i < words.size(); ++i)
      outcome.noise.push_back(std::bit_cast<double>(words[i]));
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
    for (const std::size_t at : {2 * i, 2 * i + 1})
      if (!got.noise.empty() && !wanted.noise.empty() && !same(got.noise[at], wanted.noise[at]))
        return fmt::format("{} of step {}: {} and not {}", at % 2 == 0 ? "signal" : "noise", i, got.noise[at],
                           wanted.noise[at]);
  }
  if (!same(got.evaluation, wanted.evaluation))
    return fmt::format("evaluation: {} and not {}", got.evaluation, wanted.evaluation);
  if (got.evaluated != wanted.evaluated)
    return fmt::format("evaluation: {} targets and not {}", got.evaluated, wanted.evaluated);
  if (got.hits != wanted.hits)
    return fmt::format("hits of the evaluation: {} and not {}", fmt::join(got.hits, ", "),
                       fmt::join(wanted.hits, ", "));
  if (got.state != wanted.state)
    return fmt::format("SHA-256 of weights and state: {} and not {}", to_string(got.state),
                       to_string(wanted.state));
  return {};
}

/// Samples that are a function of (step, place in the batch): unequal numbers of targets that count, one
/// sample without any, one whose source is all padding, rows to be found in ascending order, of which the
/// last are not there.
class BatchFeed {
 public:
  /// `device`: where the samples have to lie, if not in the host's memory.
  BatchFeed(const Config& config, const Layout& layout, Backend* device = nullptr)
      : fields_(fields_of(config)),
        layout_(layout),
        device_(device),
        arena_(memory_, MemoryClass::boundary, static_cast<std::size_t>(input_bytes(fields_, layout))) {
    take(arena_, drawn_);
    if (device_ != nullptr) device_arena_ = Arena(device_->memory(), MemoryClass::boundary, arena_.size());
    if (device_ != nullptr) take(device_arena_, input_.fields);
    else input_.fields = drawn_;
  }

  const StepInput& at(int step) {
    const std::int64_t samples = static_cast<std::int64_t>(layout_.micro_batches()) * layout_.samples;
    input_.valid = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const std::int64_t sample = layout_.first_sample(0) + i;
      const RandomStream stream{7, purpose_of("feed"), static_cast<std::uint32_t>(step),
                                static_cast<std::uint32_t>(sample)};
      for (const Field& field : fields_) {
        const std::int64_t each = field.shape.count();
        if (field.type == DType::u8) {
          draw_bytes(field, stream, drawn_.at(field.name).as<std::uint8_t>() + i * each);
          continue;
        }
        auto* to = drawn_.at(field.name).as<std::int32_t>() + i * each;
        if (field.name == field::picked) draw_rows(field, sample, stream, to);
        else if (field.name == field::targets && drawn_.find(field::picked))
          input_.valid +=
              draw_found(field, stream, drawn_.at(field::picked).as<std::int32_t>() + i * each, to);
        else if (field.name == field::targets) input_.valid += draw_targets(field, sample, stream, to);
        else if (field.name == field::source_lengths)
          *to = sample % 3 == 2 ? 0 : static_cast<std::int32_t>(1 + stream.word(3000) % sources());
        else draw(field, stream, field.name == field::source ? 2000 : 0, to);
      }
    }
    if (device_ != nullptr)
      for (const FieldTensors::Entry& entry : drawn_.entries())
        device_->upload(entry.tensor.data, input_.fields.at(entry.name));
    input_.step = step;
    input_.rate = 0.01 / (1 + step);
    return input_;
  }

 private:
  void take(Arena& arena, FieldTensors& to) const {
    for (const Field& field : fields_)
      to.set(field.name, arena.take(field.of(layout_.micro_batches(), layout_.samples), field.type));
  }
  std::int64_t sources() const {
    for (const Field& field : fields_)
      if (field.name == field::source) return field.shape[0];
    return 1;
  }
  static void draw(const Field& field, const RandomStream& stream, std::int64_t first, std::int32_t* to) {
    for (std::int64_t j = 0; j < field.shape.count(); ++j)
      to[j] = static_cast<std::int32_t>(stream.word(first + j) % field.below);
  }
  /// The tokens that come next, of which the first do not count; how many do.
  static std::int64_t draw_targets(const Field& field, std::int64_t sample, const RandomStream& stream,
                                   std::int32_t* to) {
    const std::int64_t count = field.shape.count(),
                       ignored = sample % 4 == 1 ? count : stream.word(1000) % count;
    draw(field, stream, 1, to);
    std::fill_n(to, ignored, -1);
    return count - ignored;
  }

  static void draw_bytes(const Field& field, const RandomStream& stream, std::uint8_t* to) {
    for (std::int64_t j = 0; j < field.shape.count(); ++j)
      to[j] = static_cast<std::uint8_t>(stream.word(static_cast<std::uint64_t>(j)));
  }
  /// Different rows of a sample in ascending order, as many as there are, then -1.
  static void draw_rows(const Field& field, std::int64_t sample, const RandomStream& stream,
                        std::int32_t* to) {
    const std::int64_t count = field.shape.count();
    const auto some = static_cast<std::int64_t>(1 + stream.word(1000) % static_cast<std::uint64_t>(count));
    std::fill_n(to, count, -1);
    if (sample % 4 == 1) return;
    for (std::int64_t j = 0; j < some; ++j)
      to[j] = static_cast<std::int32_t>(stream.word(static_cast<std::uint64_t>(4000 + j)) %
                                        static_cast<std::uint64_t>(field.below));
    std::sort(to, to + some);
    std::fill(std::unique(to, to + some), to + some, -1);
  }
  /// What stood in picked rows, of which the first of several does not count; how many do.
  static std::int64_t draw_found(const Field& field, const RandomStream& stream, const std::int32_t* picked,
                                 std::int32_t* to) {
    const std::int64_t count = field.shape.count();
    draw(field, stream, 1, to);
    for (std::int64_t j = 0; j < count; ++j)
      if (picked[j] < 0) to[j] = -1;
    if (count > 1 && picked[1] >= 0) to[0] = -1;
    return std::count_if(to, to + count, [](std::int32_t word) { return word >= 0; });
  }

  std::vector<Field> fields_;
  Layout layout_;
  Backend* device_;
  Memory memory_{Memory::Kind::host};
  Arena arena_, device_arena_;
  FieldTensors drawn_;
  StepInput input_;  ///< drawn_'s tensors on the device, or drawn_ itself where there is none
};

/// Some steps of a worker, then an evaluation: the same loop for one rank and for many. `before` is told each
/// step.
inline void train_some(Worker& worker, int steps, Outcome& outcome,
                       const std::function<void(int)>& before = {}) {
  BatchFeed feed(worker.config(), worker.layout(),
                 worker.backend().host_may_read() ? nullptr : &worker.backend());
  const auto keep = [&](const std::optional<StepScalars>& known) {
    if (!known) return;
    MP_CHECK(known->step == static_cast<std::int64_t>(outcome.losses.size()),
             "step {} is answered as number {}", known->step, outcome.losses.size());
    outcome.losses.push_back(known->loss);
    outcome.norms.push_back(known->gradient_norm);
    const GradientNoise noise = known->noise.value_or(GradientNoise{});
    outcome.noise.insert(outcome.noise.end(), {noise.signal, noise.noise});
  };
  for (int step = 0; step < steps; ++step) {
    if (before) before(step);
    keep(worker.run(feed.at(step)));
  }
  keep(worker.steps().remaining());
  const StepInput& input = feed.at(steps);
  const Evaluation found = worker.evaluator().evaluate(input);
  outcome.evaluation = found.losses;
  outcome.evaluated = found.targets;
  outcome.hits = found.hits;
}

/// Hardly anything to compute, on processors that others may use: who waits gives way, at once where ranks
/// outnumber processors. Else most messages come sooner than a sleeper is awoken.
inline void share_processors(Worker& worker) {
  const GridConfig& grid = worker.config().grid;
  const auto ranks = static_cast<unsigned>(grid.supernet * grid.pipeline * grid.data * grid.tensor);
  worker.waiting().set_crowded(true);
  worker.waiting().set_patience(ranks > std::thread::hardware_concurrency() ? 10 : 2000, 200);
}

inline Outcome outcome_of(const Config& config, const World& world, int steps) {
  Worker worker(config, world);
  share_processors(worker);
  Outcome outcome;
  train_some(worker, steps, outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

}  // namespace mindpipe
