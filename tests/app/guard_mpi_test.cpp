// ranks: 1 2
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "app/train/step_training.h"
#include "late_backend.h"

// A run that goes back, on a device that has run a step ahead of what is known.
namespace mindpipe {
namespace {

namespace fs = std::filesystem;

Config config_of(int ranks, const std::string& directory) {
  Config config;
  config.run.dir = directory;
  config.model.gpt.layers = 1;
  config.model.gpt.width = 32;
  config.model.gpt.heads = 2;
  config.model.gpt.context = 16;
  config.data.train = config.data.validation = {{MINDPIPE_SOURCE_DIR "/data/alice.txt", 1}};
  config.grid.data = ranks;
  config.reproducible.data = 2;
  config.train.batch = 8;
  config.train.micro_batch = 2;
  config.train.steps = 9;
  config.train.evaluate_every = 7;
  config.train.evaluate_batches = 1;
  config.checkpoint.every = 2;
  config.device.threads = 1;
  return resolve(config);
}

/// What a training has come to.
struct Ending {
  Sha256::Digest digest{};
  std::vector<SampleRange> left_out;
  std::int64_t rollbacks = 0, applied = 0;
  bool operator==(const Ending&) const = default;
};

Ending trained(int ranks, const std::vector<std::string>& faults, const MakeBackend& make) {
  const fs::path directory = fs::temp_directory_path() / ("mindpipe_guard_" + std::to_string(getppid()));
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fs::remove_all(directory);
  if (rank == 0) fs::create_directories(directory);
  MPI_Barrier(MPI_COMM_WORLD);
  Ending ending;
  {
    Arguments arguments;
    for (const std::string& fault : faults) arguments.injections.push_back(parse_injection(fault));
    Run run(arguments, config_of(ranks, directory), [](const Config& given, const World&) { return given; });
    run.make_worker(Purpose::training, 1, make);
    const Config& config = run.config();
    Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
    HeldOut validation = held_out_sources(config, fields_of(config));
    RunProgress begun;
    Saves saves(run, nullptr, begun, {});
    StepTraining loop(run, nullptr, corpus, &validation, saves, begun);
    loop.run();
    EXPECT_EQ(loop.done(), config.train.steps);
    ending = {run.worker().state().digest(), saves.progress().left_out, saves.progress().rollbacks,
              run.worker().state().applied_steps()};
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) fs::remove_all(directory);
  return ending;
}

std::unique_ptr<Backend> late(const Config& config, Memory& memory, int threads, const World& world) {
  return std::make_unique<LateBackend>(make_backend(config, memory, threads, world), world.rank);
}

TEST(GuardOnRanks, ALateDeviceEndsWithTheBitsOfOneThatIsNot) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto bad = [&](std::initializer_list<int> steps) {
    std::vector<std::string> faults;
    for (const int step : steps) faults.push_back(fmt::format("nan@{}:{}", ranks - 1, step));
    return faults;
  };
  const Ending undisturbed = trained(ranks, {}, make_backend);
  // Found behind an evaluation, before a checkpoint, at the end, twice, and where nothing is gone back to.
  for (const auto& steps :
       {std::initializer_list<int>{5, 6, 7}, {4, 5, 6}, {7, 8, 9}, {3, 4, 5, 6, 7, 8}, {4}}) {
    const Ending on_time = trained(ranks, bad(steps), make_backend),
                 behind = trained(ranks, bad(steps), late);
    EXPECT_EQ(on_time, behind) << *steps.begin();
    EXPECT_EQ(on_time.rollbacks, static_cast<std::int64_t>(steps.size() / 3)) << *steps.begin();
    EXPECT_NE(on_time.digest, undisturbed.digest);
  }
}

}  // namespace
}  // namespace mindpipe
