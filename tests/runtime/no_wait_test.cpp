// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "late_backend.h"
#include "runtime/predicted.h"
#include "runtime/stretches.h"

// On a device that runs behind the host a step is put into its queues and nothing else: no wait, no download,
// no memory taken.
namespace mindpipe {
namespace {

/// A worker on such a device, and what its host calls that waits.
struct LateWorker {
  LateBackend* device = nullptr;
  std::unique_ptr<Worker> worker;
  std::vector<std::string> halts;  ///< in the step under way
  std::vector<std::int64_t>
      asked_at;  ///< how much had been issued when the host asked how far the device has come

  /// `rooms`: for batches of steps; two where they are copied ahead.
  explicit LateWorker(const Config& config, int rooms = 1) {
    RunPlan plan = make_run_plan(config);
    plan.held_batches = rooms;
    worker = std::make_unique<Worker>(
        config, World{}, std::move(plan),
        [this](const Config& c, Memory& memory, int threads, const World& world) {
          auto late = std::make_unique<LateBackend>(make_backend(c, memory, threads, world), 0);
          device = late.get();
          return late;
        });
    device->on_halt([this](const std::string& call) {
      if (call == "finished") asked_at.push_back(device->issued());
      else halts.push_back(call);
    });
  }
  std::optional<StepScalars> step(Corpus& corpus, int step) {
    halts.clear();
    asked_at.clear();
    return worker->step(corpus, step, static_cast<std::int64_t>(step) * worker->config().train.batch, 1e-3);
  }
};

std::vector<Config> styles() {
  Config gpt = small_run(), llama = llama_run(), transformer = small_run(), shards = small_run(),
         bert = bert_run(), post_norm = post_norm_run(), vit = vit_run();
  gpt.train.clip = 0.5;
  llama.optimizer.kind = OptimizerKind::sgd;
  become_transformer(transformer);
  transformer.schedule.kind = ScheduleKind::zero_bubble;
  shards.reproducible = {4, 4};
  shards.train.recompute = WhichBlocks::block;
  bert.train.recompute = WhichBlocks::block;
  post_norm.schedule.kind = ScheduleKind::zero_bubble;
  vit.reproducible = {2, 2};
  std::vector<Config> all;
  for (Config* config : {&gpt, &llama, &transformer, &shards, &bert, &post_norm, &vit})
    all.push_back(resolve(*config));
  return all;
}

TEST(NoWait, AStepIsPutIntoTheQueuesAndNothingElse) {
  for (const Config& config : styles()) {
    LateWorker late(config);
    Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
    for (int step = 0; step < 4; ++step) {
      const std::optional<StepScalars> known = late.step(corpus, step);
      EXPECT_THAT(late.halts, testing::IsEmpty()) << "step " << step;
      // It asks for the answer of the step before, once all of this one is in the queues.
      EXPECT_EQ(late.asked_at.empty(), step == 0);
      for (const std::int64_t issued : late.asked_at)
        EXPECT_EQ(issued, late.device->issued()) << "step " << step;
      ASSERT_EQ(known.has_value(), step > 0);
      if (known) {
        EXPECT_EQ(known->step, step - 1);
      }
    }
    EXPECT_EQ(late.worker->steps().remaining().value().step, 3);
    EXPECT_FALSE(late.worker->steps().remaining());
  }
}

TEST(NoWait, AWaitInsideAStepIsNoticed) {
  const Config config = styles()[0];
  LateWorker late(config);
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  late.worker->stage().after_block = [&](int, const Boundary& out) {
    float first = 0;
    if (out.activation) late.device->download(out.activation.range(0, 1), &first);
  };
  late.step(corpus, 0);
  EXPECT_THAT(late.halts, testing::Contains("download"));
}

TEST(NoWait, AStepWhoseGradientIsNotFiniteChangesNothingThoughNoHostHasSeenIt) {
  const Config config = styles()[0];
  LateWorker late(config);
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  late.step(corpus, 0);
  EXPECT_TRUE(late.worker->steps().remaining().value().applied);
  const Sha256::Digest before = late.worker->state().digest();
  late.worker->stage().after_block = [&](int block, const Boundary& out) {
    if (block == 0) late.device->fill({out.activation, std::nan("")});
  };
  late.step(corpus, 1);
  const StepScalars scalars = late.worker->steps().remaining().value();
  EXPECT_TRUE(std::isnan(scalars.loss));
  EXPECT_FALSE(scalars.applied);
  EXPECT_EQ(late.worker->state().digest(), before);
}

TEST(NoWait, TimesAreTheDevicesAndKeepTheOrderOfTheList) {
  Config config = styles()[2];
  config.trace.steps = 3;
  LateWorker late(config);
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  const std::int64_t before = now_ns();
  for (int step = 0; step < 5; ++step) late.step(corpus, step);
  Executor& executor = late.worker->executor();
  Script& script = late.worker->training();
  const Recorder& recorder = executor.recorder(script);
  const std::int64_t behind = now_ns();
  ASSERT_EQ(recorder.held(), 5u);
  std::int64_t last_end = before;
  for (std::size_t step = 0; step < 5; ++step) {
    std::int64_t newest = last_end;
    for (std::size_t i = 0; i < script.list.size(); ++i) {
      const auto& [start, end] = recorder.times(step, i);
      EXPECT_GE(start, last_end) << "a step is behind the one before";
      EXPECT_GE(end, start);
      for (int earlier : script.list[i].after) EXPECT_GE(start, recorder.times(step, earlier).end);
      newest = std::max(newest, end);
    }
    last_end = newest;
  }
  EXPECT_LT(last_end, behind);
  const TimeSpent& spent = executor.spent(script);
  EXPECT_GT(spent.forward, 0);
  EXPECT_GT(spent.backward, spent.update);
  EXPECT_GT(spent.scalars, 0);
  EXPECT_LE(spent.work(), behind - before);
}

/// A device keeps so many marks of its time as the steps under way need, whoever has run in between.
TEST(NoWait, TimesAreKnownHoweverMuchRunsBetweenEvaluations) {
  Config config = styles()[0];
  config.trace.steps = 40;
  LateWorker late(config);
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  for (int step = 0; step < 40; ++step) {
    late.step(corpus, step);
    if (step % 20 == 19) late.worker->evaluator().evaluate(corpus, 20);
  }
  const Recorder& recorder = late.worker->executor().recorder(late.worker->training());
  std::int64_t last_end = 0;
  for (std::size_t step = 0; step < 40; ++step) {
    EXPECT_GE(recorder.times(step, 0).start, last_end) << step;
    last_end = recorder.times(step, late.worker->training().list.size() - 1).end;
    EXPECT_GT(last_end, 0) << step;
  }
}

/// While a list grows its host waits only for the stretch two before the one that it has to put in.
TEST(NoWait, TheHostIsTwoStretchesAheadOfTheDevice) {
  const Config config = styles()[0];
  LateWorker late(config);
  Worker& worker = *late.worker;
  Script script = worker.executor().make_open_script(worker.plan().outline, worker.steps());
  BatchFeed feed(config, worker.layout(), &worker.backend());
  const std::vector<StepInput> inputs{feed.at(0)};
  const std::vector<Action> list = without_end(worker.training().list, 1, true);
  std::int64_t last_end = 0;
  std::size_t timed = 0;
  const auto expect_times = [&] {  // of what the next piece drops
    for (std::size_t i = 0; i < script.cursors.ended_for_good(); ++i, ++timed) {
      const auto& [start, end] = script.recorder.times(0, i);
      EXPECT_GE(end, start);
      EXPECT_GT(start, 0);
      last_end = std::max(last_end, end);
    }
  };
  for (std::size_t piece = 0; piece < 4; ++piece) {
    const std::size_t first = list.size() * piece / 5, last = list.size() * (piece + 1) / 5;
    late.halts.clear();
    late.asked_at.clear();
    const std::int64_t issued = late.device->issued();
    expect_times();
    Executor::extend(script, Unproved::taken(cut_out(list, first, last)));
    worker.executor().run(script, inputs);
    EXPECT_THAT(late.halts, testing::IsEmpty()) << piece;
    EXPECT_EQ(late.asked_at.empty(), piece < 2) << piece;
    for (const std::int64_t asked : late.asked_at) EXPECT_EQ(asked, issued) << "before it puts in more";
    EXPECT_EQ(script.device_times->open(), std::min<std::size_t>(piece + 1, 2));
    EXPECT_EQ(script.cursors.ended_for_good(), piece < 2 ? 0 : first - list.size() * (piece - 1) / 5);
  }
  worker.executor().recorder(script);
  expect_times();
  EXPECT_EQ(timed, list.size() * 4 / 5);
  EXPECT_LT(last_end, now_ns());
  EXPECT_EQ(script.cursors.ended_for_good(), script.list.size()) << "who asks for times waits for them";
}

TEST(NoWait, AThousandStretchesHoldNoMoreThanAHundred) {
  const Config config = styles()[0];
  LateWorker late(config);
  Worker& worker = *late.worker;
  constexpr std::size_t of_stretch = 3;
  const int steps = static_cast<int>(1000 * of_stretch / worker.training().list.size()) + 1;
  Script script = worker.executor().make_open_script(worker.plan().outline, worker.steps());
  BatchFeed feed(config, worker.layout(), &worker.backend());
  const std::vector<StepInput> inputs{feed.at(0)};
  const std::vector<Action> list = without_end(worker.training().list, steps, true);
  std::vector<std::size_t> rooms;
  for (std::size_t first = 0; first < list.size(); first += of_stretch) {
    Executor::extend(script,
                     Unproved::taken(cut_out(list, first, std::min(list.size(), first + of_stretch))));
    worker.executor().run(script, inputs);
    EXPECT_LE(script.list.size(), 3 * of_stretch);
    EXPECT_EQ(script.cursors.ended.size(), script.list.size());
    EXPECT_LE(script.cursors.compute.actions.size(), script.list.size());
    rooms.push_back(script.recorder.capacity());
  }
  ASSERT_GE(rooms.size(), 1000u);
  EXPECT_EQ(rooms[100], rooms.back());
}

/// A host that reads the answers one step late has the same ones, and the same weights in the end.
TEST(NoWait, AnswersAreThoseOfADeviceThatIsNeverLate) {
  int rooms = 1;
  for (const Config& config : styles()) {
    LateWorker late(config, rooms);
    rooms = 3 - rooms;
    Worker prompt(config, World{});
    Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
    std::vector<StepScalars> of_late;
    for (int step = 0; step < 4; ++step)
      if (const auto known = late.step(corpus, step)) of_late.push_back(*known);
    of_late.push_back(late.worker->steps().remaining().value());
    for (int step = 0; step < 4; ++step) {
      const StepScalars wanted =
          prompt.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, 1e-3).value();
      EXPECT_EQ(of_late[step].loss, wanted.loss) << step;
      EXPECT_EQ(of_late[step].gradient_norm, wanted.gradient_norm) << step;
      EXPECT_EQ(of_late[step].valid, wanted.valid) << step;
      EXPECT_TRUE(of_late[step].applied) << step;
    }
    EXPECT_EQ(late.worker->state().digest(), prompt.state().digest());
  }
}

}  // namespace
}  // namespace mindpipe
