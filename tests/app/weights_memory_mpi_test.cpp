// thorough ranks: 1 2 4
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <filesystem>

#include "app/run/weights.h"
#include "config/config.h"
#include "peak_growth.h"

// Memory of each rank while weights are written and read, whose largest tensors are several times as large.
namespace mindpipe {
namespace {

/// A GPT-2 of 84 MB: a table of 34 MB, and matrices of 17 MB that lie transposed in files.
Config config_of(const GridConfig& grid) {
  Config config;
  config.run.dir = "unused";
  gpt::Settings& model = config.model.gpt;
  model.layers = 1;
  model.width = 1024;
  model.heads = 4;
  model.context = 16;
  model.vocabulary = 8192;
  config.data.train = {{"synthetic:arithmetic", 1}};
  config.train.batch = 4;
  config.train.micro_batch = 1;
  config.reproducible = {4, 4};
  config.device.threads = 1;
  config.grid = grid;
  return config;
}

std::vector<GridConfig> grids_of(int ranks) {
  if (ranks == 1) return {{1, 1, 1, 1}};
  if (ranks == 2) return {{1, 1, 2, 1}, {1, 2, 1, 1}, {1, 1, 1, 2}};
  return {{1, 1, 1, 4}, {1, 1, 2, 2}, {1, 2, 1, 2}};
}

TEST(MemoryOfWeights, GrowsLittleOnEveryRankWhileTheyAreWrittenAndRead) {
  if (!PeakGrowth().is_known())
    GTEST_SKIP() << "this system does not forget earlier peaks of memory (/proc/self/clear_refs)";
  World world{MPI_COMM_WORLD};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  const std::string folder =
      std::filesystem::temp_directory_path() / ("mindpipe_weights_memory_" + std::to_string(getppid()));
  constexpr std::int64_t most = std::int64_t{8} << 20;
  for (const GridConfig& grid : grids_of(world.size))
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      Config config = config_of(grid);
      config.train.precision = precision;
      config.train.zero = grid.data > 1 ? 1 : 0;
      config.exported = {20'000'000, precision, ExportNames::transformers};
      if (world.rank == 0) std::filesystem::create_directories(folder);
      Worker worker(resolve(config), world.size > 1 ? world : World{});
      worker.waiting().set_crowded(true);
      worker.state().initialize(1);
      MPI_Barrier(world.comm);
      const std::string what = fmt::format("{} pipeline {} data {} tensor {}, rank {}", name_of(precision),
                                           grid.pipeline, grid.data, grid.tensor, world.rank);
      const PeakGrowth writing;
      save_weights_for_others(worker, folder);
      const std::int64_t written = writing.bytes();
      MPI_Barrier(world.comm);
      const PeakGrowth reading;
      read_weights(worker, folder);
      const std::int64_t read = reading.bytes();
      EXPECT_LE(written, most) << what;
      EXPECT_LE(read, most) << what;
      fmt::print("{}: {:.1f} MiB while writing, {:.1f} while reading\n", what,
                 static_cast<double>(written) / 0x1p20, static_cast<double>(read) / 0x1p20);
      MPI_Barrier(world.comm);
      if (world.rank == 0) std::filesystem::remove_all(folder);
      MPI_Barrier(world.comm);
    }
}

}  // namespace
}  // namespace mindpipe
