#include "optim/unit_optimizer.h"
#include "make_backend.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

namespace mindpipe {
namespace {

/// A unit of a split matrix of several chunks, a vector and a whole matrix, in two local shards, filled with
/// numbers of its own.
struct Sample {
  Memory memory{Memory::Kind::host};
  std::unique_ptr<Backend> backend = make_cpu_backend(memory, 1, "auto");
  Unit unit{"layers.0.mlp"};

  explicit Sample(DType dtype) {
    unit.add({{{"up.weight", 400}}, 250, Split::out, Form::whole, {}, true});  // shards of 50,000: chunks of
                                                                               // 16,384 x 3 and a rest
    unit.add({{{"up.bias", 400}}, 0, Split::out, Form::whole, {}, false});
    unit.add({{{"table.weight", 300}}, 131, Split::none, Form::whole, {}, true});  // 39,300
    unit.lay_out({2, 2, 0}, 1, 0, dtype);
    unit.allocate_values(memory);
    unit.gradients().allocate(memory);
    backend->fill({unit.gradients().accumulators(0), 0});
    backend->fill({unit.flat_values(), 0});
  }
  std::vector<float> numbers(const char* what) const {
    std::vector<float> x(unit.flat_count());
    RandomStream{3, purpose_of(what)}.normals(0, unit.flat_count(), 1.0f, x.data());
    return x;
  }
};

OptimizerConfig optimizer_of(OptimizerKind kind) {
  OptimizerConfig config;
  config.kind = kind;
  return config;
}

/// What a step's scalars would have decided.
struct Decided {
  std::array<double, Decision::places> numbers{};
  Tensor of(int step, double factor) {
    const OptimizerConfig config = optimizer_of(OptimizerKind::adamw);
    numbers[Decision::gradient_factor] = factor;
    numbers[Decision::first_correction] =
        1 - std::pow(static_cast<double>(static_cast<float>(config.beta1)), step);
    numbers[Decision::second_correction] =
        1 / std::sqrt(1 - std::pow(static_cast<double>(static_cast<float>(config.beta2)), step));
    return {numbers.data(), {Decision::places}, DType::f64};
  }
};

/// Values and states after three updates, done by `parts` optimizers that each move their part.
std::vector<std::vector<std::uint32_t>> updated(OptimizerKind kind, DType dtype, int parts) {
  Sample sample(dtype);
  Unit& unit = sample.unit;
  Arena arena(sample.memory, MemoryClass::workspace, bytes_for({unit.flat_count()}, DType::f32));
  const Tensor initial = arena.take({unit.flat_count()}, DType::f32);
  sample.backend->upload(sample.numbers("values").data(), initial);
  sample.backend->convert({initial, unit.flat_values()});
  std::vector<std::unique_ptr<UnitOptimizer>> optimizers;
  for (int part = 0; part < parts; ++part) {
    optimizers.push_back(std::make_unique<UnitOptimizer>(unit, optimizer_of(kind), part, parts));
    optimizers.back()->allocate(sample.memory);
    optimizers.back()->write(*sample.backend, "master", 0, initial);
    optimizers.back()->clear_moments(*sample.backend);
  }
  Decided decided;
  for (int step = 1; step <= 3; ++step) {
    sample.backend->upload(sample.numbers(("gradient " + std::to_string(step)).c_str()).data(),
                           unit.gradients().root(0));
    for (auto& optimizer : optimizers) optimizer->update(*sample.backend, 1e-2, decided.of(step, 0.25));
  }
  std::map<std::string, std::vector<std::uint32_t>> states;
  std::vector<std::uint32_t>& values = states["value"];
  values.resize((unit.flat_count() * bytes_of(dtype) + 3) / 4);
  sample.backend->download(unit.flat_values(), values.data());
  for (auto& optimizer : optimizers)
    for (const auto& [name, slot] : optimizer->states()) {
      std::vector<std::uint32_t> words(slot.count());
      sample.backend->download(slot, words.data());
      states[name].insert(states[name].end(), words.begin(), words.end());
    }
  // What aligns shards belongs to nobody: it is not updated, and its state stays as it was.
  std::vector<std::vector<std::uint32_t>> all;
  for (auto& [name, words] : states) all.push_back(std::move(words));
  return all;
}

/// Two numbers, one of which no optimizer moves.
TEST(UnitOptimizer, ARunningStatisticFollowsItsMeanAndIsInNoSquareDecayOrMoment) {
  Memory memory(Memory::Kind::host);
  const auto backend = make_cpu_backend(memory, 1, "auto");
  Unit unit("norm");
  unit.add({{{"weight", 1}}, 0, Split::none, Form::whole, {}, true});
  ParamSpec running{{{"running_mean", 1}}, 0, Split::none, Form::whole, {}, true};
  running.follows = 0.25;
  unit.add(running);
  unit.lay_out({1, 1, 0}, 1, 0, DType::f32);
  unit.allocate_values(memory);
  unit.gradients().allocate(memory);
  EXPECT_EQ(unit.parameters(), 1);
  UnitOptimizer optimizer(unit, optimizer_of(OptimizerKind::sgd), 0, 1);
  optimizer.allocate(memory);
  optimizer.clear_moments(*backend);
  backend->fill({unit.flat_values(), 2});
  backend->fill({unit.gradients().root(0), 24});
  const auto [begin, end] = optimizer.flat().chunks_of_shard(1, 0);
  EXPECT_EQ(begin, end);
  Decided decided;
  optimizer.update(*backend, 0.5, decided.of(1, 0.125), 3);
  EXPECT_EQ(unit.value(1, 0).as<float>()[0], 2 + 0.25f * (8 - 2)) << "the mean of three micro-batches is 8";
  EXPECT_NE(unit.value(0, 0).as<float>()[0], 2);
  for (const auto& [name, slot] : optimizer.states())
    EXPECT_EQ(slot.as<float>()[unit.flat_offset(1, 0)], 0) << name;
  const Tensor decision = decided.of(2, 0.125);
  decision.as<double>()[Decision::skipped] = 1;
  optimizer.update(*backend, 0.5, decision, 3);
  EXPECT_EQ(unit.value(1, 0).as<float>()[0], 3.5f) << "a skipped step leaves it";
}

TEST(UnitOptimizer, PartsAreCutAtChunkEdgesOrBetweenTensors) {
  Sample sample(DType::f32);
  const Unit& unit = sample.unit;
  std::set<std::int64_t> allowed{unit.flat_count()};
  for (int p = 0; p < 3; ++p)
    for (int s = 0; s < unit.local_shards(p); ++s)
      for (std::int64_t e = 0; e < unit.shard_shape(p).count(); e += statistics_chunk)
        allowed.insert(unit.flat_offset(p, s) + e);
  for (int parts : {1, 2, 3, 4, 7, 8, 16, 64}) {
    const std::vector<std::int64_t> cuts = share_edges(unit, parts);
    ASSERT_EQ(static_cast<int>(cuts.size()), parts + 1);
    EXPECT_EQ(cuts.front(), 0);
    EXPECT_EQ(cuts.back(), unit.flat_count());
    EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
    for (std::int64_t cut : cuts) EXPECT_EQ(allowed.count(cut), 1u) << parts << " parts: " << cut;
    // No part is larger than an equal one by more than a chunk.
    for (int i = 0; i < parts; ++i)
      EXPECT_LE(cuts[i + 1] - cuts[i], unit.flat_count() / parts + statistics_chunk + 1);
  }
}

TEST(UnitOptimizer, EveryElementIsInOnePart) {
  Sample sample(DType::f32);
  const Unit& unit = sample.unit;
  for (int parts : {1, 2, 5, 8, 64}) {
    std::vector<int> found(unit.flat_count(), 0);
    for (int part = 0; part < parts; ++part) {
      const UnitOptimizer optimizer(sample.unit, optimizer_of(OptimizerKind::adamw), part, parts);
      for (const FlatRange& range : optimizer.flat().ranges()) {
        EXPECT_EQ(range.element % statistics_chunk, 0);
        EXPECT_EQ(range.flat, unit.flat_offset(range.param, range.shard) + range.element);
        for (std::int64_t i = 0; i < range.count; ++i) ++found[range.flat + i];
      }
    }
    for (int p = 0; p < 3; ++p)
      for (int s = 0; s < unit.local_shards(p); ++s) {
        const std::int64_t first = unit.flat_offset(p, s), count = unit.shard_shape(p).count();
        EXPECT_TRUE(
            std::all_of(found.begin() + first, found.begin() + first + count, [](int n) { return n == 1; }))
            << parts << " parts, tensor " << p << ", shard " << s;
      }
  }
}

TEST(UnitOptimizer, UpdatesInPartsAreTheUpdateOfTheWholeBitForBit) {
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd})
    for (DType dtype : {DType::f32, DType::bf16}) {
      const auto whole = updated(kind, dtype, 1);
      EXPECT_EQ(whole.size(), kind == OptimizerKind::adamw ? (dtype == DType::bf16 ? 4u : 3u)
                                                           : (dtype == DType::bf16 ? 3u : 2u));
      for (int parts : {2, 3, 8, 64})
        EXPECT_EQ(updated(kind, dtype, parts), whole) << name_of(kind) << ", " << parts << " parts";
    }
}

TEST(UnitOptimizer, SumsOfChunksMakeTheSameSquaresInAnyNumberOfParts) {
  Sample sample(DType::f32);
  Unit& unit = sample.unit;
  const std::vector<float> gradient = sample.numbers("gradient");
  sample.backend->upload(gradient.data(), unit.gradients().root(0));
  std::vector<double> expected;
  for (int parts : {1, 2, 5, 64}) {
    UnitOptimizer first(unit, optimizer_of(OptimizerKind::adamw), 0, parts);
    std::vector<double> sums(first.flat().chunks(), 0.0);
    for (int part = 0; part < parts; ++part) {
      UnitOptimizer optimizer(unit, optimizer_of(OptimizerKind::adamw), part, parts);
      std::vector<double> of_part(first.flat().chunks(), 0.0);
      optimizer.chunk_squares(*sample.backend,
                              {of_part.data(), {static_cast<std::int64_t>(of_part.size())}, DType::f64});
      for (std::int64_t i = 0; i < first.flat().chunks(); ++i) {
        EXPECT_TRUE(of_part[i] == 0 || sums[i] == 0) << "chunk " << i << " is summed by two parts";
        sums[i] += of_part[i];
      }
    }
    std::vector<double> squares;
    for (int p = 0; p < 3; ++p)
      for (int s = 0; s < unit.local_shards(p); ++s) {
        const auto [begin, end] = first.flat().chunks_of_shard(p, s);
        squares.push_back(std::accumulate(sums.begin() + begin, sums.begin() + end, 0.0));
        double exact = 0;
        for (std::int64_t i = 0; i < unit.shard_shape(p).count(); ++i)
          exact += std::pow(static_cast<double>(gradient[unit.flat_offset(p, s) + i]), 2);
        EXPECT_NEAR(squares.back() / exact, 1, 1e-5) << "tensor " << p << ", shard " << s;
      }
    if (parts == 1) expected = squares;
    EXPECT_EQ(squares, expected) << parts << " parts";
  }
}

TEST(UnitOptimizer, OnlyParametersThatDecayShrink) {
  Sample sample(DType::f32);
  Unit& unit = sample.unit;
  sample.backend->fill({unit.flat_values(), 1});
  UnitOptimizer optimizer(unit, optimizer_of(OptimizerKind::adamw), 0, 1);
  optimizer.allocate(sample.memory);
  optimizer.write(*sample.backend, "master", 0, unit.flat_values());
  optimizer.clear_moments(*sample.backend);
  optimizer.update(*sample.backend, 0.5, Decided().of(1, 1));
  EXPECT_FLOAT_EQ(unit.value(0, 1).as<float>()[7], 0.95f);  // 1 - rate x weight_decay
  EXPECT_EQ(unit.value(1, 0).as<float>()[7], 1.0f);
  EXPECT_FLOAT_EQ(unit.value(2, 0).as<float>()[7], 0.95f);
}

TEST(UnitOptimizer, MomentsAreAsBeforeTheFirstStepWheneverTheyAreCleared) {
  for (const std::int64_t rows : {30, 1100}) {  // of a small block of memory, and of one whose pages are new
    Memory memory(Memory::Kind::host);
    const std::unique_ptr<Backend> backend = make_cpu_backend(memory, 2, "auto");
    Unit unit("layers.0.mlp");
    unit.add({{{"up.weight", rows}}, 1000, Split::none, Form::whole, {}, true});
    unit.lay_out({1, 1, 0}, 1, 0, DType::f32);
    unit.allocate_values(memory);
    unit.gradients().allocate(memory);
    UnitOptimizer optimizer(unit, optimizer_of(OptimizerKind::adamw), 0, 1);
    optimizer.allocate(memory);
    EXPECT_EQ(memory.gives_zeros(optimizer.bytes()), rows == 1100);
    Decided decided;
    const auto value_after_a_step = [&] {
      backend->fill({unit.flat_values(), 1});
      backend->fill({unit.gradients().root(0), 0.5});
      optimizer.clear_moments(*backend);
      optimizer.update(*backend, 0.1, decided.of(1, 1));
      return unit.value(0, 0).as<float>()[7];
    };
    const float once = value_after_a_step();
    optimizer.update(*backend, 0.1, decided.of(2, 1));
    EXPECT_EQ(value_after_a_step(), once) << rows << " rows";
    optimizer.clear_moments(*backend);
    optimizer.write(*backend, "m", 0, unit.flat_values());
    EXPECT_EQ(value_after_a_step(), once) << rows << " rows, written";
  }
}

}  // namespace
}  // namespace mindpipe
