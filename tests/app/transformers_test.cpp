#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/torch_oracle.h"
#include "app/torch_styles.h"
#include "runtime/batches.h"
#include "tokenize/tokenizer.h"

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

/// Tokenizers of every form that AutoTokenizer opens, each in a directory.
std::vector<std::string> made_tokenizers(const Folder& folder) {
  const std::string golden = MINDPIPE_SOURCE_DIR "/tests/golden/tokenizers/";
  std::vector<std::string> directories;
  const auto file = [&](const std::string& directory, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder / directory);
    if (directories.empty() || directories.back() != folder / directory)
      directories.push_back(folder / directory);
    write_file(directories.back() + "/" + name, text);
  };
  for (const char* name : {"gpt2", "llama2", "llama3", "qwen2", "metaspace", "bert", "words"})
    file(name, "tokenizer.json", read_file(golden + name + ".json"));
  const auto model_of = [&](const char* name) {
    return nlohmann::ordered_json::parse(read_file(golden + name)).at("model");
  };
  std::string merges = "#version: 0.2\n", words;
  const nlohmann::ordered_json pairs = model_of("gpt2.json"), vocabulary = model_of("bert.json");
  for (const auto& merge : pairs.at("merges"))
    merges += (merge.is_string() ? merge.get<std::string>()
                                 : merge[0].get<std::string>() + " " + merge[1].get<std::string>()) +
              "\n";
  file("pairs", "vocab.json", pairs.at("vocab").dump());
  file("pairs", "merges.txt", merges);
  for (const auto& [word, id] : vocabulary.at("vocab").items()) words += word + "\n";
  file("pieces", "vocab.txt", words);
  return directories;
}

TEST(Transformers, OpensTheTokenizersThatRunsLeave) {
  const std::string python = peer_python_with("torch, numpy, transformers");
  if (python.empty())
    GTEST_SKIP() << "no interpreter that imports transformers (make test-peers installs it)";
  const Folder folder;
  const std::vector<std::string> lines{"The quick brown fox", "it's 3,141 o'clock  and a t\u00ebst",
                                       "x = {y: [1]}", "\u6771\u4eac \u1f600 na\u00efve", ""};
  write_file(folder / "text", join(lines, "\n"));
  std::string command = "'" + python + "' '" + MINDPIPE_SOURCE_DIR +
                        "/tests/oracle/ids_by_transformers.py' '" + (folder / "text") + "'";
  std::ostringstream ours;
  for (const std::string& directory : made_tokenizers(folder)) {
    Config config = gpt2_style();
    config.data.tokenizer = directory;
    config.run.dir = directory + "-run";
    config.data.train = {{MINDPIPE_SOURCE_DIR "/data/alice.txt", 1}};
    config.train.steps = 1;
    write_file(folder / "train.yaml", to_yaml(config));
    ASSERT_TRUE(runs(std::string(MINDPIPE_BINARY) + " --config " + (folder / "train.yaml") +
                     " model.vocabulary=auto"));
    command += " '" + config.run.dir + "'";
    const auto tokenizer = load_tokenizer(directory);
    const auto encoder = tokenizer->encoder();
    for (const std::string& line : lines) ours << fmt::format("{}\n", fmt::join(encoder->encode(line), " "));
  }
  ASSERT_TRUE(runs(command + " > '" + (folder / "ids") + "'", false));
  EXPECT_EQ(read_file(folder / "ids"), ours.str());
}

TEST(Transformers, OpensNothingWhereAKillHasLeftNoConfig) {
  const std::string python = peer_python_with("torch, numpy, transformers");
  if (python.empty())
    GTEST_SKIP() << "no interpreter that imports transformers (make test-peers installs it)";
  const Folder folder;
  const std::string golden = MINDPIPE_SOURCE_DIR "/tests/golden/transformers/gpt2/",
                    command = python + " " MINDPIPE_SOURCE_DIR "/tests/oracle/refused_by_transformers.py " +
                              (folder / "");
  std::filesystem::copy(golden + "model.safetensors", folder / "model.safetensors");
  EXPECT_TRUE(runs(command)) << "weights without a config.json";
  std::filesystem::copy(golden + "config.json", folder / "config.json");
  EXPECT_FALSE(runs(command)) << "with it they are a model";
}

}  // namespace
}  // namespace mindpipe
