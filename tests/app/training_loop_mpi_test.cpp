// ranks: 2 4
#include "app/train/step_training.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "app/train/stop_request.h"

namespace {

/// Calls of MPI, since the program began, that return once others have come so far.
std::int64_t blocking_calls = 0;
std::set<std::string>& counted_names() {
  static std::set<std::string> names;
  return names;
}
struct Counted {
  explicit Counted(const char* name) { counted_names().insert(name); }
};

}  // namespace

// The linker takes these for MPI's.
extern "C" {
#define MINDPIPE_COUNTED(name, parameters, arguments) \
  static const Counted counted_##name(#name);         \
  int MPI_##name parameters {                         \
    ++blocking_calls;                                 \
    return PMPI_##name arguments;                     \
  }
MINDPIPE_COUNTED(Barrier, (MPI_Comm comm), (comm))
MINDPIPE_COUNTED(Allreduce,
                 (const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                 (from, to, count, type, op, comm))
MINDPIPE_COUNTED(Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm),
                 (data, count, type, root, comm))
MINDPIPE_COUNTED(Allgather,
                 (const void* from, int sent, MPI_Datatype type, void* to, int received, MPI_Datatype other,
                  MPI_Comm comm),
                 (from, sent, type, to, received, other, comm))
MINDPIPE_COUNTED(Allgatherv,
                 (const void* from, int sent, MPI_Datatype type, void* to, const int* received,
                  const int* places, MPI_Datatype other, MPI_Comm comm),
                 (from, sent, type, to, received, places, other, comm))
MINDPIPE_COUNTED(Gather,
                 (const void* from, int sent, MPI_Datatype type, void* to, int received, MPI_Datatype other,
                  int root, MPI_Comm comm),
                 (from, sent, type, to, received, other, root, comm))
MINDPIPE_COUNTED(Gatherv,
                 (const void* from, int sent, MPI_Datatype type, void* to, const int* received,
                  const int* places, MPI_Datatype other, int root, MPI_Comm comm),
                 (from, sent, type, to, received, places, other, root, comm))
MINDPIPE_COUNTED(Sendrecv,
                 (const void* from, int sent, MPI_Datatype type, int receiver, int tag, void* to,
                  int received, MPI_Datatype other, int sender, int its_tag, MPI_Comm comm,
                  MPI_Status* status),
                 (from, sent, type, receiver, tag, to, received, other, sender, its_tag, comm, status))
MINDPIPE_COUNTED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
MINDPIPE_COUNTED(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
MINDPIPE_COUNTED(Send, (const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
                 (from, count, type, to, tag, comm))
MINDPIPE_COUNTED(Recv,
                 (void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Status* status),
                 (to, count, type, from, tag, comm, status))
MINDPIPE_COUNTED(Wait, (MPI_Request * request, MPI_Status* status), (request, status))
MINDPIPE_COUNTED(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses),
                 (count, requests, statuses))
#undef MINDPIPE_COUNTED
}

namespace mindpipe {
namespace {

Config config_of(int ranks, int steps) {
  Config config;
  config.run.dir = "unused";
  config.model.gpt.layers = 2;
  config.model.gpt.width = 64;
  config.model.gpt.heads = 4;
  config.model.gpt.context = 32;
  config.data.train = {{"synthetic:arithmetic", 1}};
  config.grid.pipeline = 2;
  config.grid.data = ranks / 2;
  config.train.batch = 16;
  config.train.micro_batch = 2;
  config.train.steps = steps;
  config.run.max_walltime = 1e6;
  config.checkpoint.every_time = 1e6;
  config.device.kind = DeviceKind::emulated;
  config.device.description = "instant";
  return resolve(config);
}

/// Calls that wait for nobody, or that a training makes before its first step and behind its last.
const std::set<std::string> others{"Isend",
                                   "Issend",
                                   "Irecv",
                                   "Iallreduce",
                                   "Test",
                                   "Testsome",
                                   "Request_free",
                                   "Get_count",
                                   "Request_get_status",
                                   "Error_string",
                                   "Comm_rank",
                                   "Comm_size",
                                   "Comm_group",
                                   "Group_free",
                                   "Group_translate_ranks",
                                   "Comm_set_errhandler",
                                   "Comm_free",
                                   "Comm_split_type",
                                   "Query_thread",
                                   "Init_thread",
                                   "Initialized",
                                   "Finalize",
                                   "Finalized",
                                   "Get_library_version",
                                   "Abort",
                                   "File_open",
                                   "File_close",
                                   "File_sync",
                                   "File_write_at"};

TEST(BlockingCalls, OfAllSourcesAreCounted) {
  const std::regex call("\\bMPI_([A-Z][a-z_]+)\\(");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MINDPIPE_SOURCE_DIR "/src")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      for (std::sregex_iterator found(line.begin(), line.end(), call), end; found != end; ++found)
        EXPECT_TRUE(counted_names().contains((*found)[1]) || others.contains((*found)[1]))
            << entry.path() << ": " << line;
  }
}

/// What ranks wait for each other: blocking calls of MPI, and sums of scalars over each axis.
struct Waits {
  std::int64_t blocking = 0, sums = 0;
};

Waits waits_of(Worker& worker) {
  Waits waits{blocking_calls};
  for (const Axis axis : axes) waits.sums += worker.ledger().of(axis, TrafficClass::scalars).calls;
  return waits;
}

/// Calls and sums of training so many steps, by the loop or without one.
Waits trained(int ranks, int steps, bool by_loop) {
  Arguments arguments;
  Run run(arguments, config_of(ranks, steps), [](const Config& given, const World&) { return given; });
  run.make_worker(Purpose::training);
  Worker& worker = run.worker();
  const Config& config = run.config();
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  RunProgress begun;
  Saves saves(run, nullptr, begun, {});
  StepTraining loop(run, nullptr, corpus, nullptr, saves, begun);
  const Waits before = waits_of(worker);
  for (int step = 0; step < steps && !by_loop; ++step) worker.step(corpus, step, 0, 1e-3);
  if (by_loop) loop.run();
  if (by_loop) {
    EXPECT_EQ(loop.done(), steps);
  }
  const Waits after = waits_of(worker);
  return {after.blocking - before.blocking, after.sums - before.sums};
}

TEST(TrainingLoop, WaitsForOtherRanksInsideTheStepsListsAlone) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Waits few = trained(ranks, 3, true), many = trained(ranks, 23, true),
              lists = trained(ranks, 20, false);
  EXPECT_GT(blocking_calls, 0) << "those of the starts";
  EXPECT_GT(lists.sums, 0);
  EXPECT_EQ(many.blocking - few.blocking, lists.blocking);
  EXPECT_EQ(lists.blocking, 0);
  EXPECT_EQ(many.sums - few.sums, lists.sums);
}

// Behind all others: the signal stays with the process.
TEST(TrainingLoopAtItsEnd, AWishOfOneRankThatIsThereAsAStepBeginsStopsAllBehindIt) {
  int ranks = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  install_stop_signals();
  if (rank == ranks - 1) std::raise(SIGUSR1);
  Arguments arguments;
  mindpipe::Run run(arguments, config_of(ranks, 20), [](const Config& given, const World&) { return given; });
  run.make_worker(Purpose::training);
  Corpus corpus(run.config().data, Subset::train, fields_of(run.config()), run.config().seed);
  Saves saves(run, nullptr, {}, {});
  StepTraining loop(run, nullptr, corpus, nullptr, saves, {});
  loop.run();
  EXPECT_EQ(loop.done(), 1) << rank;
  EXPECT_EQ(loop.stopped(), "stopped after step 1 as asked");
}

}  // namespace
}  // namespace mindpipe
