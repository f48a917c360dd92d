// ranks: 2, thorough ranks: 1 4
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include "app/golden_models.h"
#include "app/torch_oracle.h"

// Models of transformers on several tensor ranks. Where MINDPIPE_PEER_PYTHON names an interpreter that has
// transformers, as in `make test-peers`, it opens what they have trained.
namespace mindpipe {
namespace {

namespace fs = std::filesystem;

struct GoldenModelsOnRanks : ::testing::Test {
  World world{MPI_COMM_WORLD};
  fs::path folder;

  GoldenModelsOnRanks() {
    MPI_Comm_rank(world.comm, &world.rank);
    MPI_Comm_size(world.comm, &world.size);
    folder = fs::temp_directory_path() / ("mindpipe_golden_models_" + std::to_string(getppid()));
    if (world.rank == 0) fs::create_directories(folder);
  }
  ~GoldenModelsOnRanks() override {
    meet();
    if (world.rank == 0) fs::remove_all(folder);
  }

  /// Waits for all ranks without taking a processor from those that still work.
  void meet() const {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(world.comm, &request);
    for (int done = 0; done == 0; usleep(1000)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  std::string path(const std::string& name) const { return (folder / name).string(); }
};

TEST_F(GoldenModelsOnRanks, HaveTheLossesAndLogitsOfTransformers) {
  for (const std::string& name : golden_models()) {
    const std::string directory = golden_folder + name;
    const Config config = imported(directory, world.size, world.size);
    Worker worker(config, world);
    worker.waiting().set_crowded(true);
    begin_with_weights(worker);
    expect_as_in(SafetensorsFile(directory + "/expected.safetensors"), worker, batch_in(directory, config),
                 fmt::format("{}, rank {} of {}", name, world.rank, world.size));
  }
}

/// Trains a model for two steps on its batch, and writes it as transformers reads it.
void train_and_write(const std::string& name, int tensor, const World& world, const std::string& directory) {
  Config config = imported(golden_folder + name, 4, tensor);
  config.exported.part = 12'000;
  Worker worker(config, world);
  worker.waiting().set_crowded(true);
  begin_with_weights(worker);
  Batches batches = batch_in(golden_folder + name, config);
  batches.steps = 2;
  for (auto& [field, values] : batches.values) {
    const std::vector<std::byte> once = values;
    values.insert(values.end(), once.begin(), once.end());
  }
  {
    Feeder feeder(worker, batches);
    for (int step = 0; step < 2; ++step) feeder.step(step, 1e-2);
  }
  if (world.rank == 0) fs::create_directories(directory);
  save_weights_for_others(worker, directory);
}

/// Has transformers open the directories, and compute logits and losses of the batches there.
void ask_transformers(const std::string& python, const std::vector<std::string>& directories) {
  std::string command = "'" + python + "' '" + MINDPIPE_SOURCE_DIR + "/tests/oracle/loss_by_transformers.py'";
  for (const std::string& directory : directories) {
    const Config config = imported(directory);
    const std::string golden = golden_folder + fs::path(directory).filename().string();
    const Batches batches = batch_in(golden, config);
    std::vector<TensorToStore> stored;
    oracle::add_fields(stored, batches);
    write_safetensors(directory + "/input.safetensors", oracle::model_settings(config), stored);
    command += " '" + directory + "'";
  }
  ASSERT_TRUE(runs(command + " >/dev/null"));
}

TEST_F(GoldenModelsOnRanks, AreWrittenAsByOneRankAndOpenedByTransformers) {
  std::vector<std::string> directories;
  for (const std::string& name : golden_models()) {
    directories.push_back(path("all/" + name));
    train_and_write(name, world.size, world, directories.back());
    meet();
    if (world.rank > 0) continue;
    const std::string alone = path("alone/" + name);
    train_and_write(name, 1, World{}, alone);
    std::size_t parts = 0;
    for (const auto& entry : fs::directory_iterator(alone)) {
      const std::string file = entry.path().filename();
      parts += file.ends_with(".safetensors") ? 1 : 0;
      EXPECT_TRUE(read_file(entry.path()) == read_file(directories.back() + "/" + file))
          << name << ": " << file;
    }
    EXPECT_GT(parts, 1u) << name;
    EXPECT_EQ(std::distance(fs::directory_iterator(alone), {}),
              std::distance(fs::directory_iterator(directories.back()), {}));
  }
  const char* python = std::getenv("MINDPIPE_PEER_PYTHON");
  if (python == nullptr) return;
  if (world.rank == 0) ask_transformers(python, directories);
  meet();
  for (const std::string& directory : directories) {
    const std::string name = fs::path(directory).filename();
    Config config = imported(directory, world.size, world.size);
    Worker worker(config, world);
    worker.waiting().set_crowded(true);
    begin_with_weights(worker);
    expect_as_in(SafetensorsFile(directory + "/theirs.safetensors"), worker,
                 batch_in(golden_folder + name, config),
                 fmt::format("{} after two steps on {} ranks", name, world.size));
  }
}

}  // namespace
}  // namespace mindpipe
