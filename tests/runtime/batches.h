#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "config/config.h"
#include "core/random.h"
#include "runtime/worker.h"

namespace mindpipe {

/// Random samples of some steps: numbers for every field that a configuration's model asks for.
struct Batches {
  std::int64_t steps = 0, batch = 0;
  std::vector<Field> fields;
  std::map<std::string_view, std::vector<std::byte>> values;  ///< [steps, batch, extents of the field]

  const Field& field_of(std::string_view name) const {
    return *std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
  }
  bool has(std::string_view name) const { return values.count(name) > 0; }
  /// Numbers of a sample, counted through all steps.
  std::int32_t* numbers(std::string_view name, std::int64_t sample) {
    return reinterpret_cast<std::int32_t*>(values.at(name).data()) + sample * field_of(name).shape.count();
  }
  const std::int32_t* numbers(std::string_view name, std::int64_t sample) const {
    return const_cast<Batches*>(this)->numbers(name, sample);
  }
  const std::byte* of_step(const Field& field, int step) const {
    const std::vector<std::byte>& all = values.at(field.name);
    return all.data() + all.size() / static_cast<std::size_t>(steps) * static_cast<std::size_t>(step);
  }
};

/// Fills a field: bytes of every value; of ids the small ones more often, so that there is something to
/// learn, and every `ignored`-th target negative (0: none).
inline void draw(Batches& batches, const Field& field, std::uint64_t seed, int ignored) {
  const RandomStream stream{seed, purpose_of("batches." + std::string(field.name)), 0, 0};
  const std::int64_t count = batches.steps * batches.batch * field.shape.count();
  std::vector<std::byte>& values = batches.values[field.name];
  values.resize(static_cast<std::size_t>(count) * bytes_of(field.type));
  for (std::int64_t i = 0; i < count; ++i) {
    const double u = stream.uniform(static_cast<std::uint64_t>(i));
    if (field.type == DType::u8) {
      values[i] = static_cast<std::byte>(u * 256);
      continue;
    }
    const bool counts = field.name != field::targets || ignored == 0 || i % ignored != ignored - 1;
    batches.numbers(field.name, 0)[i] =
        counts ? static_cast<std::int32_t>(u * u * static_cast<double>(field.below)) : -1;
  }
}

/// Picks rows of every sample in their order; of two samples in three one or two picks less than there may
/// be.
inline void pick_rows(Batches& batches) {
  const std::int64_t most = batches.field_of(field::picked).shape.count(),
                     apart = batches.field_of(field::picked).below / most;
  for (std::int64_t sample = 0; sample < batches.steps * batches.batch; ++sample)
    for (std::int64_t i = 0; i < most; ++i) {
      std::int32_t* const row = batches.numbers(field::picked, sample) + i;
      *row = static_cast<std::int32_t>(i * apart + *row % apart);
      if (i < most - sample % 3) continue;
      *row = -1;
      batches.numbers(field::targets, sample)[i] = -1;
    }
}

/// Gives sources lengths: all there is room for, nothing, or something between. Targets begin with what
/// starts them. What is behind a source or a target is padding, which stands nowhere else.
inline void pad(Batches& batches, const SpecialTokens& special, std::uint64_t seed) {
  const RandomStream stream{seed, purpose_of("batches.lengths"), 0, 0};
  const std::int64_t room = batches.field_of(field::source).shape.count(),
                     rows = batches.field_of(field::tokens).shape.count();
  for (std::int64_t sample = 0; sample < batches.steps * batches.batch; ++sample) {
    const auto between = 1 + static_cast<std::int64_t>(stream.uniform(static_cast<std::uint64_t>(sample)) *
                                                       static_cast<double>(room - 1));
    const std::int64_t length = sample % 4 == 0 ? room : sample % 4 == 3 ? 0 : between;
    *batches.numbers(field::source_lengths, sample) = static_cast<std::int32_t>(length);
    const auto pad_behind = [&](std::string_view name, std::int64_t count, std::int64_t all) {
      std::int32_t* const ids = batches.numbers(name, sample);
      std::replace(ids, ids + count, special.padding, special.padding ^ 1);
      std::fill(ids + count, ids + all, special.padding);
    };
    const std::int64_t written = rows - sample % 3;
    pad_behind(field::source, length, room);
    pad_behind(field::tokens, written, rows);
    *batches.numbers(field::tokens, sample) = special.start;
    std::fill(batches.numbers(field::targets, sample) + written,
              batches.numbers(field::targets, sample) + rows, -1);
  }
}

inline Batches random_batches(const Config& config, int steps, int ignored) {
  Batches batches{steps, config.train.batch, fields_of(config), {}};
  for (const Field& field : batches.fields) draw(batches, field, config.seed, ignored);
  if (batches.has(field::picked)) pick_rows(batches);
  if (batches.has(field::source_lengths)) pad(batches, config.data.special, config.seed);
  return batches;
}

/// Feeds a worker's executor such batches, past any corpus.
class Feeder {
 public:
  Feeder(Worker& worker, const Batches& batches) : worker_(worker), batches_(batches) {
    const Layout& layout = worker.layout();
    arena_ = Arena(worker.memory(), MemoryClass::boundary,
                   static_cast<std::size_t>(input_bytes(batches.fields, layout)));
    for (const Field& field : batches.fields)
      input_.fields.set(field.name,
                        arena_.take(field.of(layout.micro_batches(), layout.samples), field.type));
  }

  StepScalars step(int step, double rate) {
    const StepInput& input = load(step, rate);
    const std::optional<StepScalars> at_once = worker_.steps().run(input);
    return at_once ? *at_once : worker_.steps().remaining().value();
  }
  const StepInput& load(int step, double rate) {
    for (const Field& field : batches_.fields)
      worker_.backend().upload(batches_.of_step(field, step), input_.fields.at(field.name));
    const Field& field = batches_.field_of(field::targets);
    const auto* const targets = reinterpret_cast<const std::int32_t*>(batches_.of_step(field, step));
    input_.valid = std::count_if(targets, targets + batches_.batch * field.shape.count(),
                                 [](std::int32_t t) { return t >= 0; });
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
