// ranks: 2, thorough ranks: 4
#include <gtest/gtest.h>
#include <mpi.h>

#include <map>

#include "late_backend.h"
#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

// What a run carries from step to step is its slots and the count of applied steps: with these another run,
// on another grid, goes on with the same bits, and with less it does not.
namespace mindpipe {
namespace {

constexpr int steps_before = 3, steps_after = 2;
constexpr const char* applied_steps = "applied steps";

/// The state of a run as whole tensors, in the memory of each rank.
struct Kept {
  std::map<std::string_view, std::vector<float>> slots;
  std::int64_t applied = 0;
};

Kept kept_of(Worker& worker) {
  Kept kept;
  for (const std::string_view slot : state_names(worker.config().train, worker.config().optimizer))
    worker.state().gather(slot, tensors_for_files(worker.stage().model()),
                          [&](const std::byte* words, std::size_t bytes) {
                            std::vector<float>& all = kept.slots[slot];
                            all.resize(all.size() + bytes / sizeof(float));
                            std::memcpy(&*all.end() - bytes / sizeof(float), words, bytes);
                          });
  kept.applied = worker.state().applied_steps();
  return kept;
}

/// Loads all that is kept but `forgotten`.
void load(Worker& worker, const Kept& kept, std::string_view forgotten = {}) {
  const std::vector<WholeTensor> tensors = tensors_for_files(worker.stage().model());
  std::map<std::string, std::int64_t> first_of;
  std::int64_t all = 0;
  for (const WholeTensor& tensor : tensors) {
    first_of[tensor.name] = all;
    all += tensor.count();
  }
  for (const auto& [slot, words] : kept.slots) {
    ASSERT_EQ(words.size(), static_cast<std::size_t>(all));
    const auto read = [&, from = words.data()](const WholeTensor& tensor, std::int64_t first,
                                               std::int64_t step, std::int64_t count, float* to) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[first_of.at(tensor.name) + first + i * step];
    };
    if (slot != forgotten) worker.state().load(slot, tensors, read);
  }
  if (forgotten != applied_steps) worker.state().set_applied_steps(kept.applied);
}

/// Losses and norms of some steps, and the state behind them.
Outcome outcome_of_more_steps(Worker& worker, int first, int count) {
  const Config& config = worker.config();
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  Outcome outcome;
  const auto keep = [&](const std::optional<StepScalars>& known) {
    if (!known) return;
    outcome.losses.push_back(known->loss);
    outcome.norms.push_back(known->gradient_norm);
  };
  for (int step = first; step < first + count; ++step)
    keep(worker.step(corpus, step, std::int64_t{step} * config.train.batch, 1e-2));
  keep(worker.steps().remaining());
  outcome.state = worker.state().digest();
  return outcome;
}

Config config_on(const GridConfig& grid, Style style, Precision precision, OptimizerKind optimizer,
                 int zero) {
  Config c = tiny(style, 4, 4);
  c.grid = grid;
  read_a_corpus(c);
  c.train.precision = precision;
  c.train.zero = zero;
  c.optimizer.kind = optimizer;
  return resolve(c);
}

std::unique_ptr<Worker> worker_of(const Config& config, bool late = false) {
  const MakeBackend make_late = [](const Config& c, Memory& memory, int threads, const World& ranks) {
    return std::make_unique<LateBackend>(make_backend(c, memory, threads, ranks), ranks.rank);
  };
  auto worker = std::make_unique<Worker>(config, all_ranks(), make_run_plan(config),
                                         late ? make_late : MakeBackend(make_backend));
  share_processors(*worker);
  return worker;
}

TEST(ModelState, LoadedOnAnotherGridGoesOnWithTheSameBits) {
  const std::vector<GridConfig> grids = grids_of(all_ranks().size);
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const auto style = static_cast<Style>(i % style_count);
    const Precision precision = i % 2 == 0 ? Precision::bf16 : Precision::f32;
    const OptimizerKind optimizer = i % 3 == 2 ? OptimizerKind::sgd : OptimizerKind::adamw;
    const int zero = static_cast<int>(i % 3);
    const Config from = config_on(grids[i], style, precision, optimizer, zero),
                 to = config_on(grids[(i + 1) % grids.size()], style, precision, optimizer, 2 - zero);
    const auto one = worker_of(from);
    outcome_of_more_steps(*one, 0, steps_before);
    const Kept kept = kept_of(*one);
    EXPECT_EQ(kept.applied, steps_before);
    const Outcome wanted = outcome_of_more_steps(*one, steps_before, steps_after);

    for (const bool late : {false, true}) {
      const auto other = worker_of(to, late);
      load(*other, kept);
      const Outcome got = outcome_of_more_steps(*other, steps_before, steps_after);
      EXPECT_EQ(difference(got, wanted), "")
          << "from " << describe(from) << " to " << describe(to) << (late ? " on a late device" : "");
      EXPECT_EQ(other->state().applied_steps(), steps_before + steps_after);
    }
  }
}

TEST(ModelState, WithoutOneOfItsSlotsOrTheAppliedStepsOtherBitsCome) {
  const GridConfig grid = grids_of(all_ranks().size).front();
  for (const auto& [precision, optimizer] :
       {std::pair{Precision::f32, OptimizerKind::adamw}, std::pair{Precision::bf16, OptimizerKind::adamw},
        std::pair{Precision::f32, OptimizerKind::sgd}}) {
    const Config config = config_on(grid, Style::gpt2, precision, optimizer, 1);
    const auto one = worker_of(config);
    outcome_of_more_steps(*one, 0, steps_before);
    const Kept kept = kept_of(*one);
    const Outcome wanted = outcome_of_more_steps(*one, steps_before, steps_after);

    std::vector<std::string_view> forgotten = state_names(config.train, config.optimizer);
    if (config.optimizer.kind == OptimizerKind::adamw)
      forgotten.push_back(applied_steps);  // SGD does not ask for them
    for (const std::string_view slot : forgotten) {
      const auto other = worker_of(config);
      load(*other, kept, slot);
      const Outcome got = outcome_of_more_steps(*other, steps_before, steps_after);
      EXPECT_NE(difference(got, wanted), "") << slot << " of " << describe(config);
    }
  }
}

TEST(ModelState, RefusesASlotThatTheRunDoesNotKeep) {
  const auto worker = worker_of(
      config_on(grids_of(all_ranks().size).front(), Style::gpt2, Precision::f32, OptimizerKind::sgd, 0));
  EXPECT_ANY_THROW(worker->state().load("m", tensors_for_files(worker->stage().model()), {}));
}

}  // namespace
}  // namespace mindpipe
