#include "app/golden_models.h"
#include "app/torch_oracle.h"
#include "app/torch_styles.h"

// Run directories of every kind, as transformers loads them. `make test-peers` installs it.
namespace mindpipe {
namespace {

using namespace oracle;

/// Two steps of a small model on data that the program makes, whose tokens are bytes and those behind them.
Config trained(Config config, const std::string& data) {
  config.data.train = {{data, 1}};
  config.data.special = {};
  config.train.steps = 2;
  config.optimizer.rate.peak = 1e-2;
  if (config.model.kind != ModelKind::vit) text_model(config).vocabulary = 260;
  config.model.transformer.first_position = 0;
  return config;
}

Config trained_m2m100() {
  Config config = trained(m2m100_style(), "synthetic:dates");
  config.model.transformer.context = 300;  // its table of positions has a row for padding
  config.model.transformer.first_position = config.data.special.padding + 1;  // as M2M100 has it
  return config;
}

Config trained_vit() {
  Config config = trained(vit_style(), "synthetic:shapes");
  vit::Settings& m = config.model.vit;
  m.picture_height = m.picture_width = 32;
  m.patch = 8;
  m.classes = 6;
  return config;
}

std::vector<Config> trained_models() {
  Config tied_llama = llama_style();
  tied_llama.model.gpt.tied = true;
  tied_llama.model.gpt.rotary_base = 5000;
  std::vector<Config> all;
  for (const Config& style : {gpt2_style(), llama_style(), tied_llama})
    all.push_back(trained(style, "synthetic:arithmetic"));
  all.push_back(trained(bert_style(), "synthetic:arithmetic"));
  for (const Tables tables : {Tables::one, Tables::two, Tables::three})
    all.push_back(trained(marian_style(tables), "synthetic:dates"));
  all.push_back(trained_m2m100());
  all.push_back(trained_vit());
  return all;
}

/// Trains in a directory, which gets what transformers needs beside the weights there, and samples. The loss
/// of those, by our own hands.
double loss_of_run(Config config, const Folder& folder) {
  config.run.dir = folder / "run";
  write_file(folder / "train.yaml", to_yaml(config));
  EXPECT_TRUE(runs(std::string(MINDPIPE_BINARY) + " --config " + (folder / "train.yaml")));
  config = resolve(config);
  Worker worker(config, {});
  read_weights_of_run(worker);
  const Batches batches = random_batches(config, 1, 6);
  std::vector<TensorToStore> stored;
  add_fields(stored, batches);
  write_safetensors(config.run.dir + "/input.safetensors", model_settings(config), stored);
  return Feeder(worker, batches).step(0, 0).loss;
}

TEST(Transformers, ReadsRunDirectoriesAndFindsTheirLosses) {
  const std::string python = peer_python_with("torch, numpy, transformers");
  if (python.empty())
    GTEST_SKIP() << "no interpreter that imports transformers (make test-peers installs it in .venv-peers; "
                    "MINDPIPE_PEER_PYTHON names another)";
  const std::vector<Config> models = trained_models();
  std::vector<double> losses;
  std::deque<Folder> folders;
  std::string command = "'" + python + "' '" + MINDPIPE_SOURCE_DIR + "/tests/oracle/loss_by_transformers.py'";
  for (const Config& config : models) {
    const Folder& folder = folders.emplace_back();
    losses.push_back(loss_of_run(config, folder));
    command += " '" + (folder / "run") + "'";
  }
  ASSERT_TRUE(runs(command + " > '" + (folders[0] / "losses") + "'", false));
  std::istringstream found(read_file(folders[0] / "losses"));
  for (std::size_t i = 0; i < models.size(); ++i) {
    std::string name;
    double loss = 0;
    ASSERT_TRUE(found >> name >> loss) << "model " << i;
    EXPECT_NEAR(loss, losses[i], 1e-6 * losses[i]) << name;
    fmt::print("{}: loss {:.9f}, ours is {:.1e} away\n", name, loss, losses[i] - loss);
  }
}

/// What transformers makes of directories with weights and input.safetensors: class and loss of each.
std::vector<std::pair<std::string, double>> losses_there(const std::string& python,
                                                         const std::vector<std::string>& directories,
                                                         const std::string& answer) {
  std::string command = "'" + python + "' '" + MINDPIPE_SOURCE_DIR + "/tests/oracle/loss_by_transformers.py'";
  for (const std::string& directory : directories) command += " '" + directory + "'";
  EXPECT_TRUE(runs(command + " > '" + answer + "'", false));
  std::istringstream found(read_file(answer));
  std::vector<std::pair<std::string, double>> losses(directories.size());
  for (auto& [name, loss] : losses) found >> name >> loss;
  return losses;
}

/// Trains a model of transformers for two steps on its batch, and leaves a directory with the weights and
/// that batch. The loss of the weights that were written.
double loss_of_trained(Config config, const std::string& from, const std::string& directory) {
  config.exported.part = 12'000;
  Worker worker(config, {});
  begin_with_weights(worker);
  const Batches batches = batch_in(from, config);
  {
    Feeder feeder(worker, batches);
    for (int step = 0; step < 2; ++step) feeder.step(step, 1e-2);
  }
  std::filesystem::create_directories(directory);
  save_weights_for_others(worker, directory);
  std::vector<TensorToStore> stored;
  add_fields(stored, batches);
  write_safetensors(directory + "/input.safetensors", model_settings(config), stored);
  config.run.weights = directory;
  return losses_of(config, from).mean;
}

TEST(Transformers, OpensWhatWasTrainedFromItsOwnModels) {
  const std::string python = peer_python_with("torch, numpy, transformers");
  if (python.empty())
    GTEST_SKIP() << "no interpreter that imports transformers (make test-peers installs it)";
  for (const std::string how : {"--dtype float32", "--dtype bfloat16 --part 12KB"}) {
    const Folder folder;
    ASSERT_TRUE(runs("'" + python + "' '" + MINDPIPE_SOURCE_DIR + "/tests/oracle/golden_models.py' '" +
                     (folder / "theirs") + "' " + how));
    std::vector<std::string> directories;
    std::vector<double> losses;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "theirs")) {
      const std::string from = entry.path(), name = entry.path().filename();
      const SafetensorsFile expected(from + "/expected.safetensors");
      EXPECT_NEAR(losses_of(imported(from), from).mean, expected.floats("loss")[0], 1e-5) << name << how;
      directories.push_back(folder / ("ours-" + name));
      losses.push_back(loss_of_trained(imported(from, 2), from, directories.back()));
    }
    const auto found = losses_there(python, directories, folder / "losses");
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(found[i].second, losses[i], 1e-5) << directories[i];
      fmt::print("{}: loss {:.9f}, ours is {:.1e} away\n", found[i].first, found[i].second,
                 losses[i] - found[i].second);
    }
  }
}

}  // namespace
}  // namespace mindpipe
