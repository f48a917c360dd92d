// ranks: 4
#include "app/train/trace_file.h"
#include "config/config.h"

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "trace/sound_tracks.h"

namespace mindpipe {
namespace {

TEST(TraceFile, HoldsEveryActionOfTheLastStepsOfAllRanksAndPairsTheirMessages) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  Config c;
  c.run.dir = "unused";
  c.model.gpt.layers = 2;
  c.model.gpt.width = 64;
  c.model.gpt.heads = 4;
  c.model.gpt.context = 32;
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.grid.pipeline = c.grid.data = 2;
  c.train.batch = 16;
  c.train.micro_batch = 2;
  c.device.kind = DeviceKind::emulated;
  c.device.description = "core";
  c.trace.steps = 2;
  c = resolve(c);
  Worker worker(c, world);
  Corpus corpus(c.data, Subset::train, fields_of(c), c.seed);
  for (int step = 0; step < 3; ++step) worker.step(corpus, step, 0, 1e-3);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trace_file_mpi_test." + std::to_string(getppid()) + ".json");
  write_trace(worker, path.string());
  if (world.rank != 0) return;

  const nlohmann::json file = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  EXPECT_EQ(file["otherData"]["device"], "emulated: core");
  std::map<std::pair<int, int>, std::size_t> actions;  // by rank, step
  std::map<std::string, int> arrows;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] == "s") ++arrows[event["id"]];
    if (event["ph"] == "f") --arrows[event["id"]];
    if (event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"].get<std::string>().find("emulated rank "), 0u);
    }
    if (event["ph"] != "X") continue;
    ++actions[{event["pid"], event["args"]["step"]}];
    EXPECT_GE(event["ts"].get<double>(), -1e7) << "clocks were brought together";
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  ASSERT_EQ(actions.size(), 8u) << "four ranks, two steps";
  for (const auto& [at, count] : actions) {
    EXPECT_TRUE(at.second == 2 || at.second == 3) << "the last steps, counted from one";
    EXPECT_EQ(count,
              worker.plan().training.program.ranks[coord_at(worker.layout().grid, at.first).pipeline].size())
        << "rank " << at.first;
  }
  std::size_t sends = 0;
  for (const auto& list : worker.plan().training.program.ranks)
    sends +=
        std::count_if(list.begin(), list.end(), [](const Action& a) { return a.kind == ActionKind::send; });
  EXPECT_EQ(arrows.size(), sends * 2 * 2) << "of two replicas and two steps";
  for (const auto& [id, open] : arrows) EXPECT_EQ(open, 0) << id;
}

/// Bytes by rank, axis and class.
using Sent = std::map<std::tuple<int, Axis, TrafficClass>, std::int64_t>;

/// What the ledgers of all ranks say of the traffic that a list of actions causes; on rank 0.
Sent ledgers_of(const World& world, Worker& worker) {
  Sent sent;
  for (const auto& [axis, kind] :
       {std::pair(Axis::data, TrafficClass::gradients), std::pair(Axis::data, TrafficClass::values),
        std::pair(Axis::pipeline, TrafficClass::pipeline),
        std::pair(Axis::pipeline, TrafficClass::gradients)}) {
    const std::int64_t own = worker.ledger().of(axis, kind).bytes;
    std::vector<std::int64_t> all(static_cast<std::size_t>(world.size));
    MPI_Gather(&own, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, 0, world.comm);
    for (int rank = 0; rank < world.size; ++rank)
      if (all[rank] > 0) sent[{rank, axis, kind}] = all[rank];
  }
  return sent;
}

/// Bytes by sender, axis and class, from the slices of step `step`.
Sent slices_of(const nlohmann::json& file, int step) {
  Sent sent;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] != "X" || event["args"]["step"] != step) continue;
    const std::string kind = event["cat"], name = event["name"];
    const std::int64_t bytes = event["args"].value("bytes", std::int64_t{0});
    if (bytes == 0) continue;
    if (kind == "reduce") sent[{event["pid"], Axis::data, TrafficClass::gradients}] += bytes;
    if (kind == "gather") sent[{event["pid"], Axis::data, TrafficClass::values}] += bytes;
    if (kind == "send")
      sent[{event["pid"], Axis::pipeline,
            name.find("unit") == std::string::npos ? TrafficClass::pipeline : TrafficClass::gradients}] +=
          bytes;
  }
  return sent;
}

TEST(TraceFile, OfReplicasHasSoundTracksAndSaysWhatEveryRankSent) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  struct Case {
    int vocabulary, zero;
  };
  // A table of ten megabytes goes in parts, two of which travel at a time; one of a single chunk is the first
  // replica's alone.
  for (const auto& [vocabulary, zero] : {Case{40064, 0}, Case{40064, 2}, Case{256, 1}}) {
    Config c;
    c.run.dir = "unused";
    c.model.gpt.layers = 2;
    c.model.gpt.width = 64;
    c.model.gpt.heads = 4;
    c.model.gpt.context = 32;
    c.model.gpt.vocabulary = vocabulary;
    c.data.train = {{"synthetic:arithmetic", 1}};
    c.grid.pipeline = c.grid.data = 2;
    c.train.batch = 8;
    c.train.micro_batch = 2;
    c.train.zero = zero;
    c.device.threads = 1;
    c.trace.steps = 2;
    c = resolve(c);
    Worker worker(c, world);
    worker.waiting().set_crowded(true);
    Corpus corpus(c.data, Subset::train, fields_of(c), c.seed);
    for (int step = 0; step < 3; ++step) {
      worker.ledger().clear();
      worker.step(corpus, step, 0, 1e-3);
    }
    const Sent expected = ledgers_of(world, worker);
    const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                       ("trace_tracks_mpi_test." + std::to_string(getppid()) + ".json");
    write_trace(worker, path.string());
    if (world.rank != 0) continue;
    const nlohmann::json file = nlohmann::json::parse(std::ifstream(path));
    std::filesystem::remove(path);
    expect_sound_tracks(file);
    EXPECT_EQ(slices_of(file, 3), expected) << "vocabulary " << vocabulary << " zero " << zero;
    std::size_t empty = 0, full = 0, arrows = 0, second_lanes = 0;
    for (const auto& event : file["traceEvents"]) {
      if (event.value("cat", "") == "send") ++(event["args"]["bytes"] == 0 ? empty : full);
      arrows += event["ph"] == "s";
      second_lanes += event["name"] == "thread_name" && event["args"]["name"] == "data group, lane 2";
    }
    EXPECT_EQ(arrows, full);
    EXPECT_EQ(empty > 0, vocabulary == 256) << empty;
    if (vocabulary == 40064) {
      EXPECT_EQ(second_lanes, 4u) << "of every rank";
    }
  }
}

TEST(TraceFile, HoldsTheTensorSumsOfEveryRank) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  Config c;
  c.run.dir = "unused";
  c.model.gpt.layers = 2;
  c.model.gpt.width = 64;
  c.model.gpt.heads = 4;
  c.model.gpt.context = 32;
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.grid.pipeline = c.grid.tensor = 2;
  c.train.batch = 8;
  c.train.micro_batch = 2;
  c.device.threads = 1;
  c.trace.steps = 2;
  c = resolve(c);
  Worker worker(c, world);
  worker.waiting().set_crowded(true);
  Corpus corpus(c.data, Subset::train, fields_of(c), c.seed);
  for (int step = 0; step < 3; ++step) worker.step(corpus, step, 0, 1e-3);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trace_sums_mpi_test." + std::to_string(getppid()) + ".json");
  write_trace(worker, path.string());
  if (world.rank != 0) return;
  const nlohmann::json file = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  std::map<std::pair<int, int>, int> sums;  // by rank, step
  std::map<std::pair<int, int>, std::int64_t> bytes;
  for (const auto& event : file["traceEvents"]) {
    if (event.value("cat", "") != "tensor") continue;
    ++sums[{event["pid"], event["args"]["step"]}];
    bytes[{event["pid"], event["args"]["step"]}] += event["args"]["bytes"].get<std::int64_t>();
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  ASSERT_EQ(sums.size(), 8u) << "four ranks, two steps";
  for (const auto& [at, count] : sums) {
    int planned = 0;
    std::int64_t sent = 0;
    for (const Action& action :
         worker.plan().training.program.ranks[coord_at(worker.layout().grid, at.first).pipeline])
      if (is_pass(action)) {
        planned += action.sums;
        sent += action.bytes;
      }
    EXPECT_EQ(count, planned) << "rank " << at.first;
    EXPECT_EQ(bytes.at(at), sent) << "rank " << at.first;
  }
}

}  // namespace
}  // namespace mindpipe
