// ranks: 2 4
#include "app/saved_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "core/random.h"
#include "io/safetensors.h"
#include "text_model.h"

// The file of weights that a run leaves: which layout trained and how much of it passed at once is not to be
// seen in it.
namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// A model of several shards and pieces, with a padded vocabulary and matrices that files have the other way
/// round.
Config small_config(bool llama) {
  Config config;
  config.run.dir = "unused";
  config.seed = 5;
  config.model.gpt.layers = 2;
  config.model.gpt.width = 48;
  config.model.gpt.heads = 4;
  config.model.gpt.context = 24;
  config.model.gpt.vocabulary = 125;
  if (llama) {
    become_llama(config);
    config.model.gpt.mlp_width = 112;
  }
  config.data.train = {{"synthetic:arithmetic", 1}};
  config.train.batch = 8;
  config.train.micro_batch = 2;
  config.train.steps = 1;
  config.reproducible = {2, 2};
  config.device.threads = 1;
  return config;
}

/// A small model of another kind, on data that the program makes: tables of their own, shapes that are
/// neither rows nor columns, rows padded up for the shards.
Config small_config(ModelKind kind) {
  Config config = small_config(false);
  config.model.kind = kind;
  BlockSettings& m = block_model(config);
  m.layers = 1;
  m.width = 48;
  m.heads = 4;
  if (kind == ModelKind::vit) {
    config.model.vit.picture_height = config.model.vit.picture_width = 32;
    config.model.vit.patch = 8;
    config.model.vit.classes = 6;
    config.data.train = {{"synthetic:shapes", 1}};
    return config;
  }
  text_model(config).context = 24;
  config.model.transformer.tables = Tables::three;
  if (kind == ModelKind::transformer) config.data.train = {{"synthetic:dates", 1}};
  return config;
}

struct WeightsFile : ::testing::Test {
  World world{MPI_COMM_WORLD};
  fs::path folder;

  WeightsFile() {
    MPI_Comm_rank(world.comm, &world.rank);
    MPI_Comm_size(world.comm, &world.size);
    folder = fs::temp_directory_path() / ("mindpipe_weights_" + std::to_string(getppid()));
    fs::create_directories(folder);
  }
  ~WeightsFile() override {
    MPI_Barrier(world.comm);
    if (world.rank == 0) fs::remove_all(folder);
  }

  std::string path(const char* name) const { return (folder / name).string(); }
  std::string bytes(const char* name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// The layouts of this many ranks.
  std::vector<GridConfig> grids() const {
    if (world.size == 2) return {{1, 1, 1, 2}, {1, 1, 2, 1}, {1, 2, 1, 1}};
    return {{1, 1, 2, 2}, {1, 2, 1, 2}, {1, 2, 2, 1}};
  }
};

void train_one_step(Worker& worker) {
  worker.waiting().set_crowded(true);
  Corpus corpus(worker.config().data, Subset::train, fields_of(worker.config()), worker.config().seed);
  worker.step(corpus, 0, 0, 1e-2);
}

/// A worker of which only so many bytes pass at once.
Worker with_staging_of(std::size_t bytes, const Config& config, const World& world) {
  RunPlan plan = make_run_plan(config);
  plan.passing = std::min(plan.passing, bytes);
  return {config, world, plan};
}

constexpr std::size_t few = 4096, all = std::size_t{1} << 30;

TEST_F(WeightsFile, HasTheSameBytesOnEveryLayoutHoweverLittlePassesAtOnce) {
  std::vector<std::pair<std::string, Config>> models{{"gpt2 in f32", small_config(false)},
                                                     {"llama in bf16", small_config(true)}};
  models[1].second.train.precision = Precision::bf16;
  for (const ModelKind kind : {ModelKind::bert, ModelKind::transformer, ModelKind::vit})
    models.emplace_back(name_of(kind), small_config(kind));
  for (auto& [name, config] : models) {
    if (world.rank == 0) {
      const Config alone = resolve(config);
      Worker worker(alone, World{});
      train_one_step(worker);
      save_weights(worker, path("alone"));
    }
    MPI_Barrier(world.comm);
    for (const GridConfig& grid : grids())
      for (const std::size_t passing : {few, all}) {
        config.grid = grid;
        config.train.zero = grid.data > 1 ? 1 : 0;
        Worker worker = with_staging_of(passing, resolve(config), world);
        train_one_step(worker);
        save_weights(worker, path("of all"));
        Worker other = with_staging_of(passing, resolve(config), world);
        MPI_Barrier(world.comm);
        read_weights(other, path("of all"));
        save_weights(other, path("read"));
        if (world.rank != 0) continue;
        const std::string where = fmt::format("{} pipeline {} data {} tensor {}, {} bytes at once", name,
                                              grid.pipeline, grid.data, grid.tensor, passing);
        ASSERT_GT(bytes("alone").size(), 100'000u);
        EXPECT_TRUE(bytes("of all") == bytes("alone")) << where;
        EXPECT_TRUE(bytes("read") == bytes("alone")) << where;
      }
  }
}

/// Name and bytes of every file of a directory.
std::map<std::string, std::string> files_of(const fs::path& directory) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    all[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return all;
}

TEST_F(WeightsFile, HasPartsOfTheSameBytesOnEveryLayout) {
  for (const ExportNames names : {ExportNames::transformers, ExportNames::mindspore})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      Config config = small_config(names == ExportNames::mindspore ? ModelKind::bert : ModelKind::gpt);
      config.exported = {40'000, precision, names};
      const auto trained_in = [&](const Config& resolved, const World& ranks, const std::string& directory) {
        Worker worker(resolved, ranks);
        train_one_step(worker);
        if (ranks.rank == 0) fs::create_directories(directory);
        save_weights_for_others(worker, directory);
      };
      if (world.rank == 0) trained_in(resolve(config), World{}, path("alone"));
      MPI_Barrier(world.comm);
      for (const GridConfig& grid : grids()) {
        config.grid = grid;
        config.train.zero = grid.data > 1 ? 1 : 0;
        const Config resolved = resolve(config);
        trained_in(resolved, world, path("of all"));
        MPI_Barrier(world.comm);
        Worker other(resolved, world);
        read_weights(other, path("of all"));
        save_weights_for_others(other, path("of all"));  // beside the parts that are there
        MPI_Barrier(world.comm);
        if (world.rank == 0) {
          const auto alone = files_of(path("alone")), all = files_of(path("of all"));
          EXPECT_GE(alone.size(), 4u) << "config.json, an index, and parts";
          EXPECT_EQ(all.size(), alone.size());
          for (const auto& [name, bytes] : alone) {
            if (!name.ends_with(".safetensors")) continue;
            const auto same = all.find("weights" + name.substr(std::string("model").size()));
            ASSERT_NE(same, all.end()) << name;
            EXPECT_TRUE(same->second == bytes) << name;
          }
          fs::remove_all(path("of all"));
        }
        MPI_Barrier(world.comm);
      }
      if (world.rank == 0) fs::remove_all(path("alone"));
      MPI_Barrier(world.comm);
    }
}

TEST_F(WeightsFile, IsReadIntoMemoryForItAlone) {
  for (Precision precision : {Precision::f32, Precision::bf16})
    for (const GridConfig& grid : grids()) {
      Config config = small_config(false);
      config.grid = grid;
      config.train.zero = grid.data > 1 ? 2 : 0;
      config.train.precision = precision;
      config = resolve(config);
      Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
      Worker trained(config, world);
      train_one_step(trained);
      save_weights(trained, path("trained"));
      MPI_Barrier(world.comm);
      Worker reader(config, world, nullptr, Purpose::reading);
      reader.waiting().set_crowded(true);
      read_weights(reader, path("trained"));
      EXPECT_EQ(reader.evaluator().evaluate(corpus, 2), trained.evaluator().evaluate(corpus, 2))
          << name_of(precision);
      const auto held = [&](MemoryClass kind) {
        return static_cast<std::int64_t>(reader.memory().allocated(kind));
      };
      EXPECT_EQ(held(MemoryClass::gradients), 0);
      EXPECT_EQ(held(MemoryClass::optimizer), 0);
      for (const MemoryClass kind : memory_classes)
        EXPECT_EQ(held(kind), reader.plan().memory_of(reader.layout().coord)[static_cast<int>(kind)])
            << name_of(kind);
      EXPECT_ANY_THROW(reader.step(corpus, 0, 0, 1e-2));
    }
}

TEST_F(WeightsFile, HoldsEachElementWhereTransformersLooksForIt) {
  Config config = small_config(false);
  config.grid.tensor = world.size == 2 ? 2 : 1;
  config.grid.pipeline = world.size == 2 ? 1 : 2;
  config.grid.data = world.size == 2 ? 1 : 2;
  Worker worker = with_staging_of(few, resolve(config), world);
  save_weights(worker, path("initial"));
  if (world.rank != 0) return;
  const SafetensorsFile file(path("initial"));
  const std::int64_t width = config.model.gpt.width;
  const auto drawn = [&](const char* name, std::int64_t element) {
    return 0.02f * static_cast<float>(RandomStream{config.seed, purpose_of(name)}.normal(element));
  };
  const char* thirds[] = {"layers.1.attention.attention.q.weight", "layers.1.attention.attention.k.weight",
                          "layers.1.attention.attention.v.weight"};
  const std::vector<float> stacked = file.floats("transformer.h.1.attn.c_attn.weight");
  EXPECT_THAT(file.tensor("transformer.h.1.attn.c_attn.weight").shape,
              testing::ElementsAre(width, 3 * width));
  for (std::int64_t in = 0; in < width; ++in)
    for (std::int64_t out = 0; out < 3 * width; ++out)
      ASSERT_FLOAT_EQ(stacked[in * 3 * width + out], drawn(thirds[out / width], out % width * width + in))
          << in << ", " << out;
  const std::vector<float> table = file.floats("transformer.wte.weight");
  ASSERT_EQ(table.size(), static_cast<std::size_t>(125 * width)) << "padding is not saved";
  for (std::int64_t i = 0; i < 125 * width; ++i)
    ASSERT_FLOAT_EQ(table[i], drawn("embedding.embedding.weight", i)) << i;
}

}  // namespace
}  // namespace mindpipe
