// ranks: 2, thorough ranks: 4
// undisturbed: stages are balanced by their times
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "app/train/step_training.h"
#include "runtime/checkpoints.h"

// Stages that balance themselves while they train, by what they report.
namespace mindpipe {
namespace {

constexpr int every = 4, all_steps = 32, slow_from = 6, slow_until = 20;

Config config_of(const std::string& directory) {
  Config config;
  config.run.dir = directory;
  config.model.gpt.layers = 6;
  config.model.gpt.width = 32;
  config.model.gpt.heads = 2;
  config.model.gpt.context = 16;
  config.model.gpt.tied = false;
  config.data.train = {{MINDPIPE_SOURCE_DIR "/data/alice.txt", 1}};
  config.grid.pipeline = all_ranks().size;
  config.train.batch = 16;
  config.train.micro_batch = 2;
  config.train.steps = all_steps;
  config.repartition.every = every;
  config.device.threads = 1;
  return config;
}

/// Passes and updates of a stage last so many times as long from some step on, or for a while: far more than
/// whatever else the machine does makes of them.
std::vector<std::string> slow(int stage) { return {fmt::format("slow@{}:{}:4", stage, slow_from)}; }
std::vector<std::string> slow_for_a_while(int stage) {
  return {fmt::format("slow@{}:{}-{}:4", stage, slow_from, slow_until)};
}

struct Training {
  Sha256::Digest digest{};
  std::vector<int> cut;  ///< at its end
  std::int64_t rollbacks = 0;
  std::vector<nlohmann::json> lines;  ///< lines of metrics.jsonl

  std::vector<double> losses() const {
    std::vector<double> all;
    for (const nlohmann::json& line : lines)
      if (line.contains("loss")) all.push_back(line["loss"]);
    return all;
  }
  /// The first step that moved blocks; 0: none did.
  int first_move() const {
    for (const nlohmann::json& line : lines)
      if (line.contains("cuts")) return line["step"];
    return 0;
  }
  int blocks_of(int stage) const { return cut[stage + 1] - cut[stage]; }
  /// The fewest blocks that the first stage has had, or the last one, once blocks moved.
  int fewest_of(int stage) const {
    int fewest = blocks_of(stage);
    for (const nlohmann::json& line : lines)
      if (line.contains("cuts")) {
        const std::vector<int> cuts = line["cuts"];
        fewest = std::min(fewest, stage == 0 ? cuts.front() : cut.back() - cuts.back());
      }
    return fewest;
  }
};

/// Trains from the newest checkpoint in the configuration's directory, or from the beginning.
Training trained(const Config& given, const std::vector<std::string>& faults = {}) {
  const World world = all_ranks();
  Training training;
  {
    Arguments arguments;
    for (const std::string& fault : faults) arguments.injections.push_back(parse_injection(fault));
    Run run(arguments, resolve(given), [](const Config& config, const World&) { return config; });
    run.make_worker(Purpose::training);
    const Config& config = run.config();
    std::optional<Resumed> from = find_checkpoint(world, config);
    if (from) from = load_newest(run, *std::move(from));
    const RunProgress begun = from ? from->manifest.progress : RunProgress{};
    const bool emulated = !row_of(config.device.kind).computes;
    std::optional<RunDirectory> directory;
    if (world.rank == 0) directory.emplace(config.run.dir, emulated);
    if (directory) directory->keep_metrics_through(begun.step, from.has_value());
    RunDirectory* here = directory ? &*directory : nullptr;
    Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
    Saves saves(run, here, begun, from);
    StepTraining loop(run, here, corpus, nullptr, saves, begun);
    loop.run();
    if (!emulated) training.digest = run.worker().state().digest();
    training.cut = run.worker().plan().outline.first_block;
    training.rollbacks = saves.progress().rollbacks;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::ifstream metrics(given.run.dir + "/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) training.lines.push_back(nlohmann::json::parse(line));
  MPI_Barrier(MPI_COMM_WORLD);
  return training;
}

Config still(Config config) {
  config.repartition.every = 0;
  return config;
}

TEST(StagesThatBalanceThemselves, MoveBlocksFromOneThatIsSlowForAWhileAndLeaveEveryBit) {
  const SharedFolder folder;
  const auto longer = [&](const std::string& name) {
    Config config = config_of(folder / name);
    config.train.steps = 40;
    return config;
  };
  const Training undisturbed = trained(still(longer("still")));
  EXPECT_EQ(undisturbed.first_move(), 0);
  for (const int stage : {0, all_ranks().size - 1}) {
    const Training moved = trained(longer(fmt::format("slow-{}", stage)), slow_for_a_while(stage));
    EXPECT_EQ(moved.digest, undisturbed.digest);
    EXPECT_EQ(moved.losses(), undisturbed.losses());
    EXPECT_LT(moved.fewest_of(stage), undisturbed.blocks_of(stage));
    EXPECT_GE(moved.first_move(), slow_from);
    EXPECT_LE(moved.first_move(), slow_from + 20);
  }
}

/// Emulated devices take as long as it says on paper, whatever else the machine does: the cut is the old one.
TEST(StagesThatBalanceThemselves, HaveTheirOldCutOnceAllAreAtFullSpeedAgain) {
  const SharedFolder folder;
  Config config = config_of(folder / "slow");
  config.device.kind = DeviceKind::emulated;
  config.device.description = "core";
  config.train.steps = 48;
  const std::vector<int> old = make_run_plan(resolve(config)).outline.first_block;
  const Training moved = trained(config, slow_for_a_while(0));
  EXPECT_LT(moved.fewest_of(0), old[1]);
  EXPECT_EQ(moved.cut, old);
  std::string why;
  for (const nlohmann::json& line : moved.lines)
    if (!line.contains("measured_seconds")) why = line.value("balance", why);
  EXPECT_THAT(why, testing::StartsWith("all stages are about equally fast: "));
}

/// Two stages of two data ranks on emulated devices, of which one of the last stage is slow.
TEST(StagesThatBalanceThemselves, HearTheSlowestRankOfAStage) {
  if (all_ranks().size != 4) GTEST_SKIP() << "4 ranks";
  const SharedFolder folder;
  Config config = config_of(folder / "slow");
  config.grid.pipeline = config.grid.data = 2;
  config.device.kind = DeviceKind::emulated;
  config.device.description = "core";
  const std::vector<int> old = make_run_plan(resolve(config)).outline.first_block;
  const Training moved = trained(config, {fmt::format("slow@3:{}:4", slow_from)});
  EXPECT_LT(moved.blocks_of(1), old[2] - old[1]);
}

/// Room for one more block is there as the run begins, and for no cut that it wishes.
TEST(StagesThatBalanceThemselves, KeepTheirCutWhereARankHasNoMemoryForAnother) {
  if (all_ranks().size != 2) GTEST_SKIP() << "2 ranks";
  const SharedFolder folder;
  Config config = config_of(folder / "slow");
  config.device.kind = DeviceKind::emulated;
  config.device.description = "core";
  config.checkpoint.background = Background::no;
  const Config known = resolve(config);
  const RunPlan plan = make_run_plan(known);
  for (int stage = 0; stage < 2; ++stage)
    config.memory.device_limit =
        std::max(config.memory.device_limit, total_of(with_room_to_move(known, plan).most_memory(stage)));
  const Training kept = trained(config, slow(0));
  EXPECT_EQ(kept.cut, plan.outline.first_block);
  std::string why;
  for (const nlohmann::json& line : kept.lines)
    if (line.contains("balance")) {
      why = line["balance"];
      EXPECT_FALSE(line.contains("planned_seconds")) << "nothing comes of it";
    }
  EXPECT_THAT(why, testing::EndsWith("; but the cut stays, since a rank would need more than "
                                     "memory.device_limit"));
}

TEST(StagesThatBalanceThemselves, SayWhyAndWhatItHasBrought) {
  const SharedFolder folder;
  const Training moved = trained(config_of(folder / "slow"), slow(0));
  const auto with = [&](const char* name) {
    return std::find_if(moved.lines.begin(), moved.lines.end(),
                        [&](const nlohmann::json& line) { return line.contains(name); });
  };
  const auto decided = with("balance"), measured = with("measured_seconds");
  ASSERT_NE(decided, moved.lines.end());
  EXPECT_THAT((*decided)["balance"].get<std::string>(), testing::StartsWith("stage 0 takes "));
  EXPECT_EQ((*decided)["balanced_from"], (*decided)["step"].get<int>() + 1) << "at once";
  EXPECT_LT((*decided)["planned_seconds"], (*decided)["planned_seconds_before"]);
  ASSERT_NE(measured, moved.lines.end());
  EXPECT_EQ((*measured)["balanced_from"], (*decided)["balanced_from"]);
  EXPECT_GE((*measured)["step"], (*measured)["balanced_by"].get<int>() + every);
  EXPECT_GT((*measured)["measured_seconds"], 0);
  EXPECT_GT((*measured)["measured_seconds_before"], 0);
}

TEST(StagesThatBalanceThemselves, GoOnFromACheckpoint) {
  const SharedFolder folder;
  const Training undisturbed = trained(still(config_of(folder / "still")));
  Config config = config_of(folder / "slow");
  config.run.stop_after = slow_from + 22;
  const Training begun = trained(config, slow(0));
  EXPECT_GT(begun.first_move(), 0);
  config.run.stop_after = 0;
  const Training ended = trained(config, slow(0));
  EXPECT_EQ(ended.digest, undisturbed.digest);
  EXPECT_EQ(ended.losses(), undisturbed.losses());
}

TEST(StagesThatBalanceThemselves, GoBackToACheckpointAndOn) {
  const SharedFolder folder;
  std::vector<std::string> faults;
  for (const int step : {27, 28, 29}) faults.push_back(fmt::format("nan@0:{}", step));
  const auto saved = [&](const char* name) {
    Config config = config_of(folder / name);
    config.checkpoint.every = 5;
    return config;
  };
  const Training undisturbed = trained(still(saved("still")), faults);
  faults.push_back(slow(0).front());
  const Training moved = trained(saved("slow"), faults);
  EXPECT_EQ(undisturbed.rollbacks, 1);
  EXPECT_EQ(moved.rollbacks, 1);
  EXPECT_EQ(moved.digest, undisturbed.digest);
  EXPECT_EQ(moved.losses(), undisturbed.losses());
  EXPECT_LT(moved.blocks_of(0), undisturbed.blocks_of(0));
}

TEST(StagesThatBalanceThemselves, EndWhereARankHasDecidedWhatOthersHaveNot) {
  const SharedFolder folder;
  const Arguments arguments;
  mindpipe::Run run(arguments, resolve(config_of(folder / "unused")),
                    [](const Config& config, const World&) { return config; });
  run.make_worker(Purpose::training);
  Balancer balancer(run.worker());
  std::vector<std::uint64_t> heard(balancer.numbers());
  balancer.say(0, heard);
  EXPECT_FALSE(balancer.hear(heard, 0.1)) << "nobody has decided anything";
  balancer.say(1, heard);
  heard[heard.size() - 2] = 7;  // another rank's, which is larger
  try {
    balancer.hear(heard, 0.1);
    ADD_FAILURE() << "blocks would move on some ranks alone";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::peer_failed);
  }
}

TEST(StagesThatBalanceThemselves, AreRefusedWhereThereIsNoRoomForABlock) {
  Config config = resolve(config_of("unused"));
  config.checkpoint.background = Background::no;
  RunPlan plan = make_run_plan(config);
  std::int64_t most = 0, most_with_room = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage) {
    most = std::max(most, total_of(plan.most_memory(stage)));
    most_with_room = std::max(most_with_room, total_of(with_room_to_move(config, plan).most_memory(stage)));
  }
  ASSERT_GT(most_with_room, most);
  config.memory.device_limit = most_with_room;
  EXPECT_TRUE(plan_moves(config, plan).empty()) << "fits";
  config.memory.device_limit = most;
  try {
    plan_moves(config, plan);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("for blocks that may come to it (repartition.every"));
  }
}

/// A copy of the state, for saves beside training, is left out where it alone does not fit.
TEST(StagesThatBalanceThemselves, DoWithoutACopyOfTheirStateWhereThereIsNoRoomForIt) {
  Config config = config_of("unused");
  config.checkpoint.every = 5;
  config = resolve(config);
  RunPlan plan = make_run_plan(config);
  ASSERT_TRUE(plan.copies_state);
  std::int64_t most = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, total_of(with_room_to_move(config, plan).most_memory(stage)));
  config.memory.device_limit = most - 1;
  EXPECT_TRUE(plan_moves(config, plan).empty());
  EXPECT_FALSE(plan.copies_state);
}

}  // namespace
}  // namespace mindpipe
