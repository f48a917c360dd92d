// ranks: 1 2 3 4, thorough ranks: 8
#include <chrono>
#include <cstdlib>
#include <thread>

#include "program/lists/stretches.h"
#include "runtime/parity_compare.h"
#include "runtime/stretches.h"

namespace mindpipe {
namespace {

constexpr std::array stretched_schedules{ScheduleKind::one_forward_one_backward, ScheduleKind::zero_bubble,
                                         ScheduleKind::interleaved};

/// How often each is tried, with other cuts, samples and weights each time (MINDPIPE_ALL_LAYOUTS=20).
int stretched_draws() {
  const char* wish = std::getenv("MINDPIPE_ALL_LAYOUTS");
  return wish == nullptr ? 1 : std::max(1, std::atoi(wish));
}

/// Grids of one to four stages, one or two replicas and one or two tensor ranks, with each schedule; models,
/// precisions and what else a step may have take turns.
std::vector<Config> stretched_cases() {
  const int ranks = all_ranks().size;
  std::vector<Config> configs;
  int turn = 0;
  for (int pipeline = 1; pipeline <= 4; ++pipeline)
    for (int data = 1; data <= 2; ++data)
      for (int tensor = 1; tensor <= 2; ++tensor)
        for (ScheduleKind schedule : stretched_schedules) {
          ++turn;
          if (pipeline * data * tensor != ranks || (pipeline == 1 && schedule != stretched_schedules[0]))
            continue;
          const bool has_chunks = row_of(schedule).has_chunks;
          Config c = tiny(turn % 2 == 0 ? Style::transformer : Style::gpt2, 2, 2, 2, 8);
          c.grid = {1, pipeline, data, tensor};
          c.schedule.kind = schedule;
          c.schedule.chunks = has_chunks ? 2 : 1;
          c.train.precision = turn % 3 == 0 ? Precision::bf16 : Precision::f32;
          c.train.zero = data > 1 ? turn % 3 : 0;
          c.train.sequence_parallel = tensor > 1 && turn % 2 == 1;
          for (int draw = 0; draw < stretched_draws(); ++draw) {
            c.seed = 11 + static_cast<std::uint64_t>(draw);
            configs.push_back(resolve(c));
          }
        }
  return configs;
}

/// Delays of actions and messages, by lot: blocks take longer, looks for messages are left out, and between
/// two stretches a rank sleeps, looks, or does neither.
class StretchDelays {
 public:
  explicit StretchDelays(Worker& worker) : worker_(worker) {
    worker.stage().after_block = [this](int, const Boundary&) { sleep(4); };
    if (worker.backend().host_may_read())
      worker.backend().on_progress([this] {
        if (lot() % 3 == 0) worker_.executor().look_around();
      });
  }
  void between() {
    if (lot() % 2 == 0) sleep(2);
    else if (worker_.backend().host_may_read()) worker_.executor().look_around();
  }

 private:
  std::uint32_t lot() {
    const auto rank = static_cast<std::uint32_t>(worker_.world().rank);
    return RandomStream{3, purpose_of("unsteady"), rank, 0}.word(turn_++);
  }
  void sleep(std::uint32_t one_in) {
    const std::uint32_t drawn = lot();
    if (drawn % one_in == 0) std::this_thread::sleep_for(std::chrono::microseconds(drawn % 1000));
  }
  Worker& worker_;
  std::uint64_t turn_ = 0;
};

Outcome outcome_in_stretches(Worker& worker, int steps, InStretches how) {
  share_processors(worker);
  StretchDelays delays(worker);
  how.between = [&](Script&, StretchLots&) { delays.between(); };
  Outcome outcome;
  StretchedTraining training(worker, steps, how);
  training.run(outcome);
  outcome.state = worker.state().digest();
  return outcome;
}

Outcome outcome_without_cuts(const Config& config, const World& world, int steps) {
  Worker worker(config, world);
  return outcome_in_stretches(worker, steps, {});
}

Outcome outcome_with_cuts(const Config& config, const World& world, int steps) {
  Worker worker(config, world);
  return outcome_in_stretches(worker, steps, {.cut_at_steps = true});
}

/// On a device that runs behind its host and is given a few actions at a time, with cuts or without.
Outcome outcome_of_queued_stretches(const Config& config, const World& world, int steps) {
  return outcome_of_queued(
      config, world, steps, carried_in_order, [](Worker& worker, int count, Outcome& outcome) {
        const bool cut = worker.config().schedule.kind == ScheduleKind::zero_bubble;
        StretchedTraining(worker, count, {.cut_at_steps = cut, .at_once = 16}).run(outcome);
      });
}

TEST(Stretches, StepsCutAnywhereAndRunBehindOneAnotherHaveTheBitsOfSteps) {
  compare(stretched_cases(), 0, 4, outcome_without_cuts, outcome_of_steps);
}

TEST(Stretches, StepsCutAnywhereWithEvaluationsBetweenThemHaveTheBitsOfSteps) {
  compare(stretched_cases(), 0, 3, outcome_with_cuts, outcome_of_steps);
}

TEST(Stretches, DevicesThatCarryTheirMessagesThemselvesHaveTheBitsOfSteps) {
  compare(stretched_cases(), 0, 3, outcome_of_queued_stretches, outcome_of_steps);
}

/// Replicas that sum gradients.
Config of_replicas(int ranks) {
  Config c = tiny(Style::gpt2, 2, 2, 2, 8);
  c.grid = {1, ranks / 2, 2, 1};
  if (ranks > 8) c.grid = {1, ranks / 4, 2, 2};
  c.train.zero = 1;
  return resolve(c);
}

/// A step up to its scalars: when the last backward has ended, the sum of what it made has not begun.
ListStretch up_to_scalars(const std::vector<Action>& step) {
  const auto scalars = std::find_if(
      step.begin(), step.end(), [](const Action& action) { return action.kind == ActionKind::sum_scalar; });
  return cut_out(step, 0, static_cast<std::size_t>(scalars - step.begin()));
}

TEST(Stretches, WhatIsUnderWayEndsWithoutAFurtherRun) {
  const int ranks = all_ranks().size;
  if (ranks % 2 == 1) GTEST_SKIP() << "two replicas";
  Worker worker(of_replicas(ranks), all_ranks());
  share_processors(worker);
  Script script = worker.executor().make_open_script(worker.plan().outline, worker.steps());
  BatchFeed feed(worker.config(), worker.layout());
  const std::vector<StepInput> inputs{feed.at(0)};
  Executor::extend(script, Unproved::taken(up_to_scalars(worker.training().list)));
  worker.executor().run(script, inputs);
  EXPECT_FALSE(script.cursors.is_over());
  const std::int64_t start = now_ns();
  while (!script.cursors.is_over() && seconds_since(start) < 30) worker.executor().look_around();
  EXPECT_TRUE(script.cursors.is_over());
  worker.executor().finish(script, inputs);
}

TEST(Stretches, NoOtherListRunsWhileOneHasSomethingUnderWay) {
  const int ranks = all_ranks().size;
  if (ranks != 2) GTEST_SKIP() << "two replicas";
  Worker worker(of_replicas(ranks), all_ranks());
  share_processors(worker);
  Script script = worker.executor().make_open_script(worker.plan().outline, worker.steps());
  BatchFeed feed(worker.config(), worker.layout());
  const std::vector<StepInput> inputs{feed.at(0)};
  Executor::extend(script, Unproved::taken(up_to_scalars(worker.training().list)));
  worker.executor().run(script, inputs);
  EXPECT_THROW(worker.steps().run(inputs[0]), Error);
  worker.executor().finish(script, inputs);
  worker.evaluator().evaluate(inputs[0]);
}

}  // namespace
}  // namespace mindpipe
