// What saving and loading the state of GPT-2 124M (f32, Adam) takes, on the ranks that it is started on,
// beside dd with fsync of as many bytes, in turn; and what saves in the background cost the training.
//   mpirun -np 2 checkpoints_bench [--folder DIRECTORY] [--repeats 5] [--layers 12] [--json FILE]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "comm/mpi.h"
#include "config/config.h"
#include "core/clock.h"
#include "runtime/checkpoint_reader.h"
#include "runtime/checkpoint_writer.h"

namespace {

using namespace mindpipe;

Config config_of(int ranks, int layers, bool background) {
  Config config;
  config.run.dir = "none";
  gpt::Settings& model = config.model.gpt;
  model.layers = layers;
  model.width = 768;
  model.heads = 12;
  model.context = 64;
  model.vocabulary = 50257;
  config.data.train = {{"synthetic:arithmetic"}};
  config.grid = {1, 1, ranks, 1};
  config.reproducible = {1, 2};
  config.train.steps = 1000;
  config.train.batch = 2;
  config.train.micro_batch = 1;
  config.train.zero = ranks > 1 ? 1 : 0;
  config.checkpoint.every = 1;
  config.checkpoint.background = background ? Background::automatic : Background::no;
  config.device.threads = std::max(1, 2 / ranks);
  return resolve(config);
}

Manifest manifest_of(const Worker& worker, std::int64_t step) {
  Manifest manifest;
  manifest.progress.step = step;
  manifest.settings["seed"] = std::to_string(worker.config().seed);
  return manifest;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void meet(const World& world) {
  if (world.comm != MPI_COMM_NULL) MPI_CHECK(MPI_Barrier(world.comm));
}

/// Lets the next reader of the file get it from the device.
void forget(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  fdatasync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

double seconds_of_dd(const World& world, const std::string& words) {
  meet(world);
  const std::int64_t start = now_ns();
  if (world.rank == 0 && std::system(("dd status=none bs=16M " + words).c_str()) != 0) std::abort();
  const double seconds = seconds_since(start);
  meet(world);
  return seconds;
}

double seconds_of_load(Worker& worker, const World& world, const std::string& directory) {
  meet(world);
  const std::int64_t start = now_ns();
  const Manifest manifest = read_manifest(directory);
  const std::string damage = load_checkpoint(worker, manifest, directory);
  if (!damage.empty()) fail(Exit::checkpoint_corrupt, "{}", damage);
  const double seconds = seconds_since(start);
  meet(world);
  return seconds;
}

/// Times of one way of saving, in turns with dd.
struct Times {
  std::vector<double> save, load, write, read;
};

Times saves_and_loads(const World& world, const std::string& folder, int layers, int repeats) {
  Worker worker(config_of(world.size, layers, false), world);
  Corpus corpus(worker.config().data, Subset::train, worker.plan().fields, 1, 1000);
  worker.step(corpus, 0, 0, 1e-4);  // zeros are cheaper to write
  CheckpointWriter writer(worker, folder);
  Times times;
  for (int i = 0; i < repeats; ++i) {
    const std::string directory = checkpoints_of(folder) + "/" + checkpoint_name(i + 1),
                      file = directory + "/state.h5";
    const std::string plain = folder + "/plain",
                      count = std::to_string((writer.bytes() + (16 << 20) - 1) / (16 << 20));
    times.write.push_back(seconds_of_dd(world, "if=/dev/zero of=" + plain + " conv=fsync count=" + count));
    if (world.rank == 0) std::remove(plain.c_str());
    meet(world);
    const std::int64_t start = now_ns();
    writer.begin(manifest_of(worker, i + 1), "");
    writer.finish();
    times.save.push_back(seconds_since(start));
    if (const std::string problem = writer.problem(); !problem.empty()) fail(Exit::io_error, "{}", problem);
    // Who reads first changes from turn to turn, and each waits first: caches behind the device hold for some
    // seconds what a save or the other one has just moved, as they do not when a job comes back.
    for (const bool loads : {i % 2 != 0, i % 2 == 0}) {
      if (world.rank == 0) forget(file);
      std::this_thread::sleep_for(std::chrono::seconds(5));
      if (loads) times.load.push_back(seconds_of_load(worker, world, directory));
      else times.read.push_back(seconds_of_dd(world, "if=" + file + " of=/dev/null"));
    }
    if (world.rank == 0)
      std::fprintf(stderr, "dd writes %.2f s, save %.2f s, dd reads %.2f s, load %.2f s\n",
                   times.write.back(), times.save.back(), times.read.back(), times.load.back());
    if (world.rank == 0) remove_checkpoint(directory);
    meet(world);
  }
  return times;
}

/// Seconds of the steps with `saves` saves among them, the last one ended; and how long the training stood
/// still for all saves but the first.
struct Training {
  double seconds = 0, stood_still = 0;
};

Training trained(const World& world, const std::string& folder, int layers, int steps, int saves,
                 bool background) {
  Worker worker(config_of(world.size, layers, background), world);
  Corpus corpus(worker.config().data, Subset::train, worker.plan().fields, 1, 1000);
  CheckpointWriter writer(worker, folder);
  worker.step(corpus, 0, 0, 1e-4);
  if (background) {  // the pages of the copy are there from now on
    writer.begin(manifest_of(worker, 1), "");
    writer.finish();
  }
  const double before = writer.stood_still();
  meet(world);
  const std::int64_t start = now_ns();
  for (int step = 1; step <= steps; ++step) {
    worker.step(corpus, step, step * 2, 1e-4);
    std::vector<std::int64_t> writes{writer.writes()};
    worker.wiring().sum_over_grid(writes);
    if (writes[0] == 0 && writer.to_be_collected()) writer.collect();
    if (saves > 0 && step % (steps / (saves + 1)) == 0 && step < steps)
      writer.begin(manifest_of(worker, step + 1), "");
  }
  const double still = writer.stood_still() - before;
  writer.finish();
  meet(world);
  const Training took{seconds_since(start), still};
  if (world.rank == 0)
    for (const CheckpointPlace& place : checkpoints_in(folder)) remove_checkpoint(place.path);
  meet(world);
  return took;
}

}  // namespace

int main(int count, char** words) {
  const MpiSession session(count, words);
  const World world{session.size() > 1 ? session.world() : MPI_COMM_NULL, session.rank(), session.size()};
  int repeats = 5, layers = 12;
  std::string folder = ".", json;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::string(words[i]) == "--folder") folder = words[i + 1];
    if (std::string(words[i]) == "--repeats") repeats = std::stoi(words[i + 1]);
    if (std::string(words[i]) == "--layers") layers = std::stoi(words[i + 1]);
    if (std::string(words[i]) == "--json") json = words[i + 1];
  }
  const Times times = saves_and_loads(world, folder, layers, repeats);
  const double save = median(times.save), load = median(times.load), write = median(times.write),
               read = median(times.read);
  std::vector<double> cost, still;
  for (int i = 0; i < repeats; ++i) {
    constexpr int saves = 3;
    const int steps = (saves + 1) * std::max(4, static_cast<int>(4 * save));
    const double none = trained(world, folder, layers, steps, 0, false).seconds;
    const double fore = trained(world, folder, layers, steps, saves, false).seconds;
    const Training back = trained(world, folder, layers, steps, saves, true);
    cost.push_back((back.seconds - none) / (fore - none));
    still.push_back(back.stood_still / (fore - none));
    if (world.rank == 0)
      std::fprintf(stderr, "%d steps %.2f s, with %d saves %.2f s, beside them %.2f s, stood still %.2f s\n",
                   steps, none, saves, fore, back.seconds, back.stood_still);
  }
  if (world.rank != 0) return 0;
  const std::string line = fmt::format(
      R"({{"ranks": {}, "save_seconds": {:.3f}, "dd_write_seconds": {:.3f}, "load_seconds": {:.3f}, )"
      R"("dd_read_seconds": {:.3f}, "save": {:.3f}, "load": {:.3f}, )"
      R"("background_cost": {:.3f}, "stood_still": {:.3f}}})",
      world.size, save, write, load, read, write / save, read / load, median(cost), median(still));
  std::printf("%s\n", line.c_str());
  if (!json.empty()) std::ofstream(json) << line << "\n";
}
