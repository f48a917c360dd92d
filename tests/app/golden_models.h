#pragma once
#include <gtest/gtest.h>

#include "app/run/weights.h"
#include "config/models/architectures.h"
#include "config/settings.h"
#include "runtime/batches.h"
#include "text_model.h"

// Models that tests/oracle/golden_models.py has made with transformers, each with a batch and its losses.
namespace mindpipe {

inline const std::string golden_folder = MINDPIPE_SOURCE_DIR "/tests/golden/transformers/";

/// What `import` makes of a directory, with the batch that is there.
inline Config imported(const std::string& directory, int shards = 1) {
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
/// What a model makes of the batch of a directory.
inline Losses losses_of(const Config& config, const std::string& directory) {
  Worker worker(config, {});
  begin_with_weights(worker);
  const Batches batches = batch_in(directory, config);
  Feeder feeder(worker, batches);
  Losses losses{feeder.step(0, 0).loss, {}};
  PassRooms& rooms = worker.executor().actions().rooms_of(worker.training());
  losses.all.resize(static_cast<std::size_t>(rooms.slot(0).tape->losses.count()));
  worker.backend().download(rooms.slot(0).tape->losses, losses.all.data());
  return losses;
}

}  // namespace mindpipe
