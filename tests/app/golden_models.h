#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "app/run/weights.h"
#include "config/models/architectures.h"
#include "config/settings.h"
#include "runtime/batches.h"
#include "text_model.h"

// Models that tests/oracle/golden_models.py has made with transformers, each with a batch and its losses.
namespace mindpipe {

/// The folder of the models; MINDPIPE_GOLDEN_MODELS names another one, that `make test-peers` has had made.
inline const std::string golden_folder = [] {
  const char* other = std::getenv("MINDPIPE_GOLDEN_MODELS");
  return other != nullptr ? std::string(other) + "/" : MINDPIPE_SOURCE_DIR "/tests/golden/transformers/";
}();

inline std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// What `import` makes of a directory, with the batch that is there.
inline Config imported(const std::string& directory, int shards = 1, int tensor = 1) {
  const TheirModel model = their_model(directory + "/config.json");
  Config config;
  config.model.kind = model.kind;
  for (const Setting& setting : settings_of(config))
    for (const auto& [key, value] : model.settings)
      if (setting.key() == key) setting.read(parse_document(value, key, false));
  config.run.weights = directory;
  config.run.dir = "unused";
  config.data.sequence = config.data.target_sequence = 12;
  config.data.source_sequence = 8;
  config.data.masked = 3;
  config.train.batch = config.train.micro_batch = 4;
  config.device.threads = 1;
  config.reproducible.tensor = shards;
  config.grid.tensor = tensor;
  BlockSettings& blocks = block_model(config);
  blocks.dropout = blocks.attention_dropout = 0;
  return resolve(config);
}

/// The batch in a directory's expected.safetensors.
inline Batches batch_in(const std::string& directory, const Config& config) {
  const SafetensorsFile file(directory + "/expected.safetensors");
  Batches batches{1, config.train.batch, fields_of(config), {}};
  for (const Field& field : batches.fields) {
    const StoredTensor& stored = file.tensor(std::string(field.name));
    batches.values[field.name].assign(file.data(stored), file.data(stored) + (stored.end - stored.begin));
  }
  return batches;
}

struct Losses {
  double mean = 0;
  std::vector<float> all;
};
/// What a worker makes of a batch, of which it has the losses of all targets.
inline Losses losses_of(Worker& worker, const Batches& batches) {
  Feeder feeder(worker, batches);
  Losses losses{feeder.step(0, 0).loss, {}};
  PassRooms& rooms = worker.executor().actions().rooms_of(worker.training());
  losses.all.resize(static_cast<std::size_t>(rooms.slot(0).tape->losses.count()));
  worker.backend().download(rooms.slot(0).tape->losses, losses.all.data());
  return losses;
}
/// What a model makes of the batch of a directory.
inline Losses losses_of(const Config& config, const std::string& directory) {
  Worker worker(config, {});
  begin_with_weights(worker);
  return losses_of(worker, batch_in(directory, config));
}

/// Logarithms of the probabilities of all classes at all targets: what a loss is where the class is the
/// target.
inline std::vector<float> log_probabilities(Worker& worker, Batches batches, std::int64_t classes) {
  std::vector<std::byte>& bytes = batches.values.at(field::targets);
  const std::span targets(batches.numbers(field::targets, 0), bytes.size() / sizeof(std::int32_t));
  std::vector<float> all(targets.size() * static_cast<std::size_t>(classes));
  for (std::int64_t one = 0; one < classes; ++one) {
    std::fill(targets.begin(), targets.end(), static_cast<std::int32_t>(one));
    const std::vector<float> losses = losses_of(worker, batches).all;
    for (std::size_t i = 0; i < targets.size(); ++i)
      all[i * static_cast<std::size_t>(classes) + static_cast<std::size_t>(one)] = -losses[i];
  }
  return all;
}

/// Logarithms of the probabilities by the logits that transformers finds.
inline std::vector<float> log_probabilities(const SafetensorsFile& file) {
  std::vector<float> logits = file.floats("logits");
  const auto classes = static_cast<std::size_t>(file.tensor("logits").shape.back());
  for (auto row = logits.begin(); row != logits.end(); row += static_cast<std::ptrdiff_t>(classes)) {
    double sum = 0;
    for (std::size_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(row[i]));
    for (std::size_t i = 0; i < classes; ++i) row[i] = static_cast<float>(row[i] - std::log(sum));
  }
  return logits;
}

inline double largest_difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(ours[i]) - theirs[i]));
  return largest;
}

/// Expects the losses and logits of a file, and says how far they are away.
inline void expect_as_in(const SafetensorsFile& file, Worker& worker, const Batches& batches,
                         const std::string& what) {
  const Losses losses = losses_of(worker, batches);
  const double of_loss = std::abs(losses.mean - file.floats("loss")[0]),
               of_losses = largest_difference(losses.all, file.floats("losses")),
               of_logits =
                   largest_difference(log_probabilities(worker, batches, file.tensor("logits").shape.back()),
                                      log_probabilities(file));
  EXPECT_LE(of_loss, 1e-5) << what;
  EXPECT_LE(of_losses, 1e-4) << what;
  EXPECT_LE(of_logits, 1e-4) << what;
  fmt::print("{}: loss {:.9f}, ours is {:.1e} away, logits {:.1e}\n", what, file.floats("loss")[0], of_loss,
             of_logits);
}

}  // namespace mindpipe
