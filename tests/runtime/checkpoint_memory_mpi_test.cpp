// thorough ranks: 2
#include <gtest/gtest.h>

#include "runtime/checkpoints.h"
#include "runtime/resident.h"

// What a save takes of the machine's memory.
namespace mindpipe {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// A state of about 140 MB.
Config weighty_run(const GridConfig& grid, Background background) {
  Config config = wide_run();
  text_model(config).layers = 5;
  config.grid = grid;
  config.train.zero = grid.data > 1 ? 1 : 0;
  config.checkpoint.every = 1;
  config.checkpoint.background = background;
  return resolve(config);
}

const std::vector<GridConfig>& grids() {
  static const std::vector<GridConfig> all{{1, 1, 1, 2}, {1, 1, 2, 1}, {1, 2, 1, 1}};
  return all;
}

void train_a_step(Worker& worker) {
  const Config& config = worker.config();
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  worker.step(corpus, 0, 0, 1e-3);
  worker.steps().remaining();
}

/// How much more is resident behind a save than before, and at its height.
struct Growth {
  std::int64_t behind = 0, peak = 0;
};
Growth growth_of_save(Worker& worker, const std::string& run_directory, int step) {
  const std::int64_t before = high_water_after_reset();
  save(worker, run_directory, step);
  const std::int64_t peak = high_water_bytes() - before;
  malloc_trim(0);
  return {resident_bytes() - before, peak};
}

/// Makes MPI, HDF5 and the threads take what they keep.
void save_a_narrow_one(const Config& wide, const std::string& run_directory) {
  Config narrow = wide;
  text_model(narrow).width /= 4;
  text_model(narrow).mlp_width /= 4;
  const auto worker = worker_of(narrow, all_ranks());
  train_a_step(*worker);
  save(*worker, run_directory, 1);
}

TEST(CheckpointMemory, ASaveInTheForegroundTakesAtMostSixteenMebibytesOfARank) {
  const SharedFolder folder("/dev/shm");
  for (const GridConfig& grid : grids()) {
    const Config config = weighty_run(grid, Background::no);
    save_a_narrow_one(config, folder / "narrow");
    const auto worker = worker_of(config, all_ranks());
    EXPECT_EQ(worker->copy_memory(), nullptr);
    train_a_step(*worker);
    EXPECT_LE(growth_of_save(*worker, folder / "run", 1).peak, 16 * mebibyte) << describe(config);
  }
}

/// The largest of all ranks' numbers.
std::int64_t most_of_ranks(std::int64_t mine) {
  std::int64_t most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

TEST(CheckpointMemory, ASaveInTheBackgroundTakesTheCopyThatWasPlanned) {
  const SharedFolder folder("/dev/shm");
  for (const GridConfig& grid : grids()) {
    const Config config = weighty_run(grid, Background::automatic);
    save_a_narrow_one(config, folder / "narrow");
    const auto worker = worker_of(config, all_ranks());
    train_a_step(*worker);
    const std::int64_t planned =
        worker->plan().memory_of(worker->layout().coord)[static_cast<int>(MemoryClass::copy)];
    const Growth first = growth_of_save(*worker, folder / "run", 1),
                 second = growth_of_save(*worker, folder / "run", 2);
    const auto expect_planned = [&](std::int64_t grown, std::int64_t expected) {
      EXPECT_LE(std::abs(grown - expected), expected / 100)
          << describe(config) << ": " << grown << " bytes, " << expected << " planned";
    };
    // The plan says of ranks that share products what the one needs that writes most.
    if (grid.tensor == 1) expect_planned(first.behind, planned);
    expect_planned(most_of_ranks(first.behind), most_of_ranks(planned));
    EXPECT_LE(first.behind, planned + planned / 100);
    EXPECT_LE(first.peak - first.behind, 2 * longest_file_piece) << describe(config);
    EXPECT_LE(second.peak, 2 * longest_file_piece) << describe(config) << ": a second copy";
  }
}

}  // namespace
}  // namespace mindpipe
