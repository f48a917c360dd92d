// What writing and reading the files of GPT-2 124M's weights takes, on the ranks that it is started on:
// seconds, and by how much the memory of any rank grows meanwhile.
//   mpirun -np 4 weights_bench [--folder DIRECTORY] [--grid TENSOR,DATA,PIPELINE] [--part BYTES] [--layers
//   12]
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "app/run/weights.h"
#include "comm/mpi.h"
#include "config/config.h"
#include "core/clock.h"
#include "peak_growth.h"

namespace {

using namespace mindpipe;

Config config_of(const GridConfig& grid, int layers, std::int64_t part) {
  Config config;
  config.run.dir = "none";
  gpt::Settings& model = config.model.gpt;
  model.layers = layers;
  model.width = 768;
  model.heads = 12;
  model.context = 1024;
  model.vocabulary = 50257;
  config.data.train = {{"synthetic:arithmetic"}};
  config.grid = grid;
  config.reproducible = {4, 4};
  config.train.batch = 4;
  config.train.micro_batch = 1;
  config.device.threads = 1;
  config.exported.part = part;
  return resolve(config);
}

void meet(const World& world) {
  if (world.comm != MPI_COMM_NULL) MPI_CHECK(MPI_Barrier(world.comm));
}

/// Seconds of a call on all ranks, and the growth of the rank whose memory grows most, in MiB.
struct Cost {
  double seconds = 0, growth = 0;
};
template <class Call>
Cost cost_of(const World& world, Call call) {
  meet(world);
  const PeakGrowth peak;
  const std::int64_t start = now_ns();
  call();
  meet(world);
  Cost cost{seconds_since(start), static_cast<double>(peak.bytes()) / 0x1p20};
  if (world.comm != MPI_COMM_NULL)
    MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &cost.growth, 1, MPI_DOUBLE, MPI_MAX, world.comm));
  return cost;
}

}  // namespace

int main(int count, char** words) {
  const MpiSession session(count, words);
  const World world{session.size() > 1 ? session.world() : MPI_COMM_NULL, session.rank(), session.size()};
  int layers = 12;
  std::int64_t part = std::int64_t{5'000'000'000};
  GridConfig grid{1, 1, 1, session.size()};
  std::string folder = ".";
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--folder") folder = words[i + 1];
    if (word == "--layers") layers = std::stoi(words[i + 1]);
    if (word == "--part") part = std::stoll(words[i + 1]);
    if (word == "--grid" &&
        std::sscanf(words[i + 1], "%d,%d,%d", &grid.tensor, &grid.data, &grid.pipeline) != 3)
      std::abort();
  }
  const std::string directory = folder + "/weights_bench";
  if (world.rank == 0) std::filesystem::create_directories(directory);
  Worker worker(config_of(grid, layers, part), world, nullptr, Purpose::reading);
  worker.state().initialize(1);
  const Cost write = cost_of(world, [&] { save_weights_for_others(worker, directory); });
  const Cost read = cost_of(world, [&] { read_weights(worker, directory); });
  meet(world);
  if (world.rank != 0) return 0;
  std::filesystem::remove_all(directory);
  std::printf(R"({"ranks": %d, "write_seconds": %.3f, "write_growth_mib": %.2f, "read_seconds": %.3f, )"
              R"("read_growth_mib": %.2f})"
              "\n",
              world.size, write.seconds, write.growth, read.seconds, read.growth);
}
