// ranks: 1 2 4
#include "app/verbs/extract.h"

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/saved_weights.h"
#include "comm/mpi.h"
#include "spaces.h"
#include "supernet/sampler.h"

// A network by itself computes what it does among all those of its supernet, bit for bit, on every grid.
namespace mindpipe {
namespace {

namespace fs = std::filesystem;

Config small_supernet(bool pairs, Precision precision, std::uint64_t seed) {
  Config config;
  config.seed = seed;
  config.model.kind = ModelKind::supernet;
  config.schedule.kind = ScheduleKind::causal;
  supernet::Settings& m = config.model.supernet;
  m.space = space_from(
      pairs ? "{name: pairs, encoder: {blocks: 3, candidates: [conv-3, light-3-4, attention-4, identity]}, "
              "decoder: {blocks: 3, candidates: [glu, separable-3, attention-2, cross-4]}}"
            : "{name: texts, decoder: {blocks: 6, candidates: [attention-4, mlp-2, light-5-2, glu]}}");
  m.width = 16;
  m.context = 32;
  config.data.train = config.data.validation = {{pairs ? "synthetic:dates" : "synthetic:arithmetic", 1}};
  config.reproducible = {2, 2};
  config.train.batch = 8;
  config.train.micro_batch = 2;
  config.train.steps = 16;
  config.train.precision = precision;
  config.supernet.window = 8;
  config.supernet.evaluate_subnets = 1;
  config.device.threads = 1;
  return config;
}

struct ExtractOnGrids : ::testing::Test {
  World world{MPI_COMM_WORLD};
  fs::path folder;

  ExtractOnGrids() {
    MPI_Comm_rank(world.comm, &world.rank);
    MPI_Comm_size(world.comm, &world.size);
    folder = fs::temp_directory_path() / ("mindpipe_extract_" + std::to_string(getppid()));
    fs::create_directories(folder);
  }
  ~ExtractOnGrids() override {
    MPI_Barrier(world.comm);
    if (world.rank == 0) fs::remove_all(folder);
  }
  std::string path(const char* name) const { return (folder / name).string(); }
  std::vector<GridConfig> grids() const {
    if (world.size == 1) return {{1, 1, 1, 1}};
    if (world.size == 2) return {{1, 1, 1, 2}, {1, 1, 2, 1}, {1, 2, 1, 1}};
    return {{1, 1, 2, 2}, {1, 2, 1, 2}, {1, 4, 1, 1}};
  }

  /// Trains on one rank, and leaves what a run leaves.
  void train(const Config& config) const {
    Worker worker(resolve(config), World{});
    Corpus corpus(config.data, Subset::train, fields_of(worker.config()), config.seed, 16 * 8);
    struct Calls : SubnetCalls {
      Worker& worker;
      Corpus& corpus;
      Calls(Worker& w, Corpus& c) : worker(w), corpus(c) {}
      void load(const Subnet& subnet, StepInput& input) override {
        worker.inputs().load_whole(corpus, subnet.id * worker.layout().batch, input);
        input.rate = 1e-2;
      }
      std::int64_t count(std::int64_t) override { return 0; }
    } calls(worker, corpus);
    worker.subnets()->answer_to(calls);
    worker.subnets()->train(first_subnets(worker.config()), true);
    save_weights(worker, path("model.safetensors"));
    std::ofstream(path("config.yaml")) << to_yaml(worker.config());
    std::ofstream(path("status.json")) << R"({"state": "done", "step": 16})";
  }
};

TEST_F(ExtractOnGrids, AreEvaluatedAndBeginAsInTheirSupernet) {
  for (const bool pairs : {true, false})
    for (const Precision precision : {Precision::f32, Precision::bf16})
      for (const std::uint64_t seed : {1, 2}) {  // of which another network to evaluate follows
        Config config = small_supernet(pairs, precision, seed);
        config.run.dir = folder;
        const std::vector<std::uint8_t> choice = subnets_to_evaluate(resolve(config)).at(0).choice;
        if (world.rank == 0) {
          train(config);
          fs::create_directories(path("net"));
          extract_weights(folder, resolve(config), choice, path("net"));
          std::ofstream(path("subnet.yaml"))
              << subnet_yaml(resolve(config), choice, path("none"), path("net"));
        }
        MPI_Barrier(world.comm);
        std::optional<Evaluation> first;
        for (const GridConfig& grid : grids()) {
          config.grid = grid;
          Worker all(resolve(config), world, nullptr, Purpose::reading);
          all.waiting().set_crowded(true);
          read_weights_of_run(all);
          Config one = read_config(path("subnet.yaml"), {});
          one.grid = grid;
          Worker worker(resolve(one), world);
          worker.waiting().set_crowded(true);
          begin_with_weights(worker);
          Corpus corpus = Corpus(one.data, Subset::validation, fields_of(one), one.seed);
          const Evaluation wanted = all.evaluator().evaluate(corpus, 2),
                           found = worker.evaluator().evaluate(corpus, 2);
          const std::string where =
              fmt::format("{}, {}, seed {}, pipeline {} data {} tensor {}", pairs ? "pairs" : "texts",
                          name_of(precision), seed, grid.pipeline, grid.data, grid.tensor);
          EXPECT_EQ(found, wanted) << where;
          if (!first) first = found;
          EXPECT_EQ(found, *first) << where;
          EXPECT_GT(found.targets, 0);

          const double score = worker.evaluator().evaluate(corpus, 1).loss();
          std::optional<StepScalars> step = worker.step(corpus, 0, 0, 1e-3);
          if (!step) step = worker.steps().remaining();
          EXPECT_EQ(step->loss, score) << where << ": the first loss of a training";
        }
        MPI_Barrier(world.comm);
      }
}

}  // namespace
}  // namespace mindpipe
