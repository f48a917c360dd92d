// thorough ranks: 4 8, alone
// undisturbed: powers are told apart by times
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "app/energy/energy_text.h"
#include "app/energy/run_energy.h"
#include "backend_over.h"
#include "config/config.h"
#include "energy/made_work.h"
#include "make_backend.h"
#include "plan/cost_model.h"
#include "plan/slack.h"
#include "runtime/ranks.h"

// The account and the advice on emulated devices, whose powers and passes are known.
namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// A device that tells by its own clock how long it computed.
class MeteredBackend final : public BackendOver {
 public:
  MeteredBackend(std::unique_ptr<Backend> device, std::atomic<double>& busy_seconds)
      : BackendOver(std::move(device)),
        clock_(dynamic_cast<const PricingBackend&>(*device_)),
        busy_seconds_(busy_seconds) {
    device_->on_progress([this] {
      busy_seconds_ = clock_.seconds();
      progress();
    });
  }

 private:
  const PricingBackend& clock_;
  std::atomic<double>& busy_seconds_;
};

/// Pipelines of emulated cores whose passes take 5 ms and more.
Config emulated(int stages) {
  Config c;
  c.run.dir = "unused";
  c.model.gpt.layers = 2 * stages;
  c.model.gpt.width = 192;
  c.model.gpt.heads = 4;
  c.model.gpt.context = 128;
  c.model.gpt.vocabulary = 256;
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.grid.pipeline = stages;
  c.train.micro_batch = 4;
  c.device.kind = DeviceKind::emulated;
  c.device.description = "core";
  return c;
}

/// Other programs' turns are no work and no wait of ours: real-time priority, where this user may have it.
void hurry() {
  const sched_param priority{30};
  sched_setscheduler(0, SCHED_FIFO, &priority);
}

/// A directory that rank 0 makes and takes away, and all know.
struct SharedDirectory {
  explicit SharedDirectory(const World& of) : world(of) {
    char name[] = "/tmp/energyXXXXXX";
    if (world.rank == 0) {
      EXPECT_NE(mkdtemp(name), nullptr);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, world.comm);
    path = name;
  }
  ~SharedDirectory() {
    MPI_Barrier(world.comm);
    if (world.rank == 0) fs::remove_all(path);
  }
  World world;
  std::string path;
};

/// What all ranks' devices tell, in a file that the made NVML library reads.
MadeWork& shared_work(const World& world, const std::string& path) {
  if (world.rank == 0) std::ofstream(path) << std::string(sizeof(MadeWork), '\0');
  MPI_Barrier(world.comm);
  setenv("MADE_NVML_WORK", path.c_str(), 1);
  // Whoever opens NVML from here on gets this library.
  EXPECT_NE(dlopen(MINDPIPE_MADE_NVML, RTLD_NOW), nullptr) << dlerror();
  void* mapped =
      mmap(nullptr, sizeof(MadeWork), PROT_READ | PROT_WRITE, MAP_SHARED, open(path.c_str(), O_RDWR), 0);
  EXPECT_NE(mapped, MAP_FAILED);
  return *static_cast<MadeWork*>(mapped);
}

/// What a run said of its energy, and what its devices took.
struct MeteredRun {
  nlohmann::json said;
  double joules = 0, seconds = 0;
  /// Whether the powers came out within so much.
  bool knows_powers(double within) const {
    return said.at("watts_by_regression") == true &&
           std::abs(said.at("watts_busy").get<double>() / MadeWork::busy_watts - 1) <= within &&
           std::abs(said.at("watts_else").get<double>() / MadeWork::waiting_watts - 1) <= within;
  }
};

/// Steps with a pause behind each take turns with steps without: alike windows would tell no powers apart. An
/// imitated evaluation lasts as forwards of steps do, and its operations up to 6 % longer.
MeteredRun metered_run(const World& world, MadeWork& work, const std::string& path) {
  Config c = emulated(world.size);
  c.train.batch = 32;
  c.energy.meter = EnergyMeter::nvml;
  c = resolve(c);
  Worker worker(c, world, make_run_plan(c),
                [&](const Config& config, Memory& memory, int threads, const World& all) {
                  return std::make_unique<MeteredBackend>(make_backend(config, memory, threads, all),
                                                          work.busy_seconds[all.rank]);
                });
  worker.waiting().set_crowded(true);
  Corpus corpus(c.data, Subset::train, fields_of(c), c.seed);
  std::optional<RunDirectory> directory;
  if (world.rank == 0) directory.emplace(path, true);
  const std::vector<RankPlace> places = all_places(world.comm, place_of_this_rank(1));
  const JobNode node = node_of_rank(world, places, {world.rank, std::nullopt, ""});
  RunEnergy energy(worker, places, node, directory ? &*directory : nullptr, 0);
  energy.begin();
  MeteredRun run;
  const std::int64_t start = now_ns();
  const double before = work.busy_seconds[world.rank];
  int step = 0;
  for (int turn = 0; turn < 10; ++turn)
    for (int end = step + 4; step < end; ++step) {
      worker.step(corpus, step, 0, 1e-3);
      if (turn % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      energy.look();
    }
  run.seconds = seconds_since(start);
  double busy = work.busy_seconds[world.rank] - before;
  MPI_Allreduce(MPI_IN_PLACE, &busy, 1, MPI_DOUBLE, MPI_SUM, world.comm);
  run.joules = MadeWork::busy_watts * busy + MadeWork::waiting_watts * (world.size * run.seconds - busy);
  energy.report(step);
  if (world.rank == 0) {
    std::ifstream file(directory->path_of("energy.json"));
    run.said = nlohmann::json::parse(file);
  }
  return run;
}

TEST(EnergyOfEmulatedDevices, GivesTheirKnownPowersBack) {
  const World world = all_ranks();
  if (world.size != 4) GTEST_SKIP();
  hurry();
  const SharedDirectory shared(world);
  MadeWork& work = shared_work(world, shared.path + "/work");
  // Another process may take the processors for a moment, which no device tells: one of three is to hold.
  MeteredRun run;
  for (int attempt = 0; attempt < 3; ++attempt) {
    run = metered_run(world, work, shared.path + "/run" + std::to_string(attempt));
    int holds = world.rank == 0 && run.knows_powers(0.03) ? 1 : 0;
    MPI_Bcast(&holds, 1, MPI_INT, 0, world.comm);
    if (holds != 0) break;
  }
  if (world.rank != 0) return;
  std::printf("%s\n", run.said.dump().c_str());
  EXPECT_TRUE(run.knows_powers(0.03))
      << MadeWork::busy_watts << " W busy and " << MadeWork::waiting_watts << " W else are true";
  EXPECT_EQ(run.said["estimated"], false);
  const double joules = run.said["joules"];
  EXPECT_NEAR(joules, run.joules, 0.01 * joules);
  double phases = 0;
  for (const char* phase :
       {"forward", "backward", "update", "scalars", "evaluations", "waiting", "outside_steps"}) {
    EXPECT_GE(run.said[std::string("joules_") + phase], 0) << phase;
    phases += run.said[std::string("joules_") + phase].get<double>();
  }
  EXPECT_NEAR(phases, joules, 0.02 * joules);
  EXPECT_LE(run.said["reader_seconds"], 0.001 * run.seconds);
}

/// The middle of three periods of a step whose passes take so long.
double period_of(const Config& c, const World& world, const RunPlan& plan, const Durations& durations) {
  constexpr int count = 3;
  RunPlan timed = plan;
  timed.training.expected = simulate(plan.training.program, durations, plan.training.network);
  Worker worker(c, world, std::move(timed), [](const Config& config, Memory& memory, int, const World&) {
    return make_pricing_backend(memory, describe_device(device_on_paper(config)));
  });
  worker.waiting().set_crowded(true);
  Corpus corpus(c.data, Subset::train, fields_of(c), c.seed);
  std::vector<double> periods;
  for (int step = 0; step <= count; ++step) {
    const std::int64_t start = now_ns();
    worker.step(corpus, step, 0, 1e-3);
    if (step > 0) periods.push_back(seconds_since(start));
  }
  std::nth_element(periods.begin(), periods.begin() + count / 2, periods.end());
  return periods[static_cast<std::size_t>(count / 2)];
}

/// What the advice says of each stage: "stage 0 may run 18.2 % slower", ", stage 1 3.1 %".
std::vector<double> printed_slack(const std::string& text, int stages) {
  std::vector<double> slack(static_cast<std::size_t>(stages), 0);
  const std::regex each("stage ([0-9]+) (?:may run )?([0-9.]+) %");
  for (std::sregex_iterator found(text.begin(), text.end(), each), end; found != end; ++found)
    slack[std::stoul((*found)[1])] = std::stod((*found)[2]) / 100;
  return slack;
}

TEST(AdviceOnEmulatedDevices, LeavesTheStepAsLongAsItIsWhereItIsFollowed) {
  const World world = all_ranks();
  if (world.size != 8) GTEST_SKIP();
  hurry();
  constexpr int heavy = 3;
  Config c = emulated(world.size);
  c.model.gpt.layers = world.size + 1;
  c.schedule.cuts = {3, 5, 7, 11, 13, 15, 17};
  c.train.batch = 4 * 32;
  c = resolve(c);
  const RunPlan plan = make_run_plan(c);
  const Program& program = plan.training.program;
  const Durations durations = durations_of(program, plan.outline, plan.training.network);
  std::int64_t forward = INT64_MAX;
  for (std::size_t stage = 0; stage < program.ranks.size(); ++stage)
    for (std::size_t i = 0; i < program.ranks[stage].size(); ++i)
      if (program.ranks[stage][i].kind == ActionKind::forward)
        forward = std::min(forward, durations[stage][i]);
  EXPECT_GE(forward, 4'000'000);

  EnergyAccount account;
  account.joules = 1000;
  account.powers.busy = 8;
  std::vector<RankEnergy> ranks(8);
  for (RankEnergy& rank : ranks) rank.spent.forward = 10'000'000'000;
  const std::string text = slack_text(slack_advice(plan, account, ranks, {1, 1, 8, 1}, {6, 5, 2, 2}));
  const std::vector<double> slack = printed_slack(text, world.size);
  for (int stage = 0; stage < world.size; ++stage)
    if (stage == heavy) EXPECT_EQ(slack[heavy], 0) << text;
    else EXPECT_GE(slack[static_cast<std::size_t>(stage)], 0.01) << text;
  const auto simulated = [&](const Durations& of) {
    return static_cast<double>(simulate(program, of, plan.training.network).step) * 1e-9;
  };
  const Durations slower = slowed(program, durations, slack);
  EXPECT_LE(simulated(slower), 1.003 * simulated(durations));
  std::vector<double> too_much = slack;
  too_much[heavy] = 0.06;
  const Durations too_slow = slowed(program, durations, too_much);

  // Another process may take the processors for a moment: one of three attempts is to hold.
  double followed = 0, overdone = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const double before = period_of(c, world, plan, durations), after = period_of(c, world, plan, slower);
    followed = after / before - 1;
    overdone = period_of(c, world, plan, too_slow) / before - 1;
    if (world.rank == 0)
      std::printf(
          "%ssimulated %.4f s a step, advice followed %.4f s; emulated %.4f s, followed %.4f s (%+.2f %%); "
          "stage %d "
          "6 %% slower, too: %+.2f %%\n",
          attempt == 0 ? text.c_str() : "", simulated(durations), simulated(slower), before, after,
          100 * followed, heavy, 100 * overdone);
    int holds = std::abs(followed) <= 0.02 && overdone > 0.02 ? 1 : 0;
    MPI_Bcast(&holds, 1, MPI_INT, 0, world.comm);
    if (holds != 0) break;
  }
  if (world.rank != 0) return;
  EXPECT_LE(std::abs(followed), 0.02);
  EXPECT_GT(overdone, 0.02) << "a slower heavy stage would not have been noticed";
}

}  // namespace
}  // namespace mindpipe
