// ranks: 4
#include "app/trace_file.h"

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace mindpipe {
namespace {

TEST(TraceFile, HoldsEveryActionOfTheLastStepsOfAllRanksAndPairsTheirMessages) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  Config c;
  c.run.dir = "unused";
  c.model.layers = 2, c.model.width = 64, c.model.heads = 4, c.model.context = 32;
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.grid.pipeline = c.grid.data = 2;
  c.train.batch = 16, c.train.micro_batch = 2;
  c.device.kind = "emulated", c.device.description = "core";
  c.trace.steps = 2;
  c = resolve(c);
  Worker worker(c, world);
  Corpus corpus(c.data, Part::train, c.model, c.seed);
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
    EXPECT_EQ(count, worker.plan().step.program.ranks[coord_at(worker.layout().grid, at.first).pipeline].size()) << "rank " << at.first;
  }
  std::size_t sends = 0;
  for (const auto& list : worker.plan().step.program.ranks)
    sends += std::count_if(list.begin(), list.end(), [](const Action& a) { return a.kind == Kind::send; });
  EXPECT_EQ(arrows.size(), sends * 2 * 2) << "of two replicas and two steps";
  for (const auto& [id, open] : arrows) EXPECT_EQ(open, 0) << id;
}

TEST(TraceFile, HoldsTheTensorSumsOfEveryRank) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  Config c;
  c.run.dir = "unused";
  c.model.layers = 2, c.model.width = 64, c.model.heads = 4, c.model.context = 32;
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.grid.pipeline = c.grid.tensor = 2;
  c.train.batch = 8, c.train.micro_batch = 2;
  c.device.threads = 1, c.trace.steps = 2;
  c = resolve(c);
  Worker worker(c, world);
  worker.waiting().set_crowded(true);
  Corpus corpus(c.data, Part::train, c.model, c.seed);
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
    for (const Action& action : worker.plan().step.program.ranks[coord_at(worker.layout().grid, at.first).pipeline])
      if (!is_communication(action)) planned += action.sums, sent += action.bytes;
    EXPECT_EQ(count, planned) << "rank " << at.first;
    EXPECT_EQ(bytes.at(at), sent) << "rank " << at.first;
  }
}

}  // namespace
}  // namespace mindpipe
