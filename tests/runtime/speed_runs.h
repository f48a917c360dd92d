#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/models/prices.h"
#include "core/text.h"
#include "runtime/ranks.h"
#include "runtime/worker.h"
#include "spaces.h"
#include "supernet/sampler.h"

// Runs of supernets on emulated devices, which take the time that prices say, with real messages.
namespace mindpipe {

/// A bundled table of prices, or one where all candidates are alike, whose price 1 is so long. `move`: of a
/// unit's state, in forwards of its block; 0: as its bytes. Each process has its own file.
class TableFile {
 public:
  TableFile(const std::string& table, double unit, double move = 0)
      : path_(std::filesystem::temp_directory_path() /
              ("mindpipe_speed_up_" + std::to_string(getpid()) + ".yaml")) {
    std::ifstream bundled(MINDPIPE_SOURCE_DIR "/configs/prices/h200.yaml");
    std::ofstream file(path_);
    file << "unit: " << shortest(unit) << "\n";
    if (move > 0) file << "move: " << shortest(move) << "\n";
    for (std::string line; table == "h200" && std::getline(bundled, line);)
      if (!line.starts_with("unit:")) file << line << "\n";
    if (table == "equal")
      file << "backward: 2\nupdate: 0.01\nembedding: 0.05\nbridge: 0.05\nhead: 0.05\ncandidates: {conv: 1, "
              "separable: 1, light: 1, attention: 1, cross: 1, glu: 1, identity: 1}\n";
  }
  ~TableFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// What is measured, what is known of it, and how far streams differ.
struct SpeedRow {
  std::string table, space;
  SamplerKind sampler;
  int micro_batches;
  double simulated = 0, wanted = 0;  ///< median on 8 stages
  double streams_differ_by = 0;
  int lanes = 1;
  bool own_cuts = false;
  double ratio =
      0;  ///< r: how long a unit's state is under way, in passes of its block over all micro-batches
  int window = 16;
  std::int64_t forward = 4'000'000;  ///< nanoseconds, of a micro-batch on a mean stage

  std::string name() const {
    return fmt::format("{:5} {} {:11} {} micro-batches{}{}", table, space, row_of(sampler).name,
                       micro_batches, lanes > 1 ? fmt::format(", {} lanes", lanes) : "",
                       own_cuts ? ", own cuts" : "");
  }
  double move() const { return ratio * 3 * micro_batches; }
};

/// The mean price of a block's candidates.
inline double mean_price(const SpeedRow& row) {
  if (row.table == "equal") return 1;
  const Space space = space_from(row.space);
  double sum = 0;
  for (const auto& block : read_prices(row.table, space).candidates)
    for (const double price : block) sum += price / static_cast<double>(block.size());
  return sum / space.blocks();
}

/// The length of price 1 with which a mean stage's forward takes a little more than it has to.
inline double length_of_one(const SpeedRow& row, int stages) {
  return 1.01e-9 * static_cast<double>(row.forward) * stages / (48 * mean_price(row));
}

/// A space of its full length on narrow layers: memory is counted, and nothing computed. Messages take 1 % of
/// a micro-batch's forward; each lane admits twice as many subnets as it has stages, with slots for all.
inline Config run_of(const SpeedRow& row, int stages, const std::string& prices) {
  Config c;
  c.run.dir = "unused";
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.model.kind = ModelKind::supernet;
  c.schedule.kind = ScheduleKind::causal;
  c.model.supernet.space = space_from(row.space);
  c.model.supernet.width = 16;
  c.model.supernet.context = c.data.source_sequence = c.data.target_sequence = 8;
  c.grid.pipeline = stages;
  c.grid.supernet = row.lanes;
  c.supernet.window = row.window;
  c.supernet.cuts = row.own_cuts ? SubnetCuts::own : SubnetCuts::home;
  c.train.batch = row.micro_batches;
  c.train.micro_batch = 1;
  c.device.kind = DeviceKind::emulated;
  c.device.description = "core";
  c.device.threads = 1;
  const double latency = 1e-11 * static_cast<double>(row.forward);
  c.device.links = {64, latency, 1e15, latency, 1e15};
  c.supernet.prices = prices;
  c.supernet.admission = 2 * stages * row.lanes;
  c.supernet.slots = 2 * stages * row.micro_batches;
  return resolve(c);
}

inline std::unique_ptr<Sampler> sampler_of(const SpeedRow& row, std::uint64_t seed) {
  return draw_subnets(space_from(row.space), {.kind = row.sampler, .seed = seed});
}

inline std::vector<Subnet> stream_drawn(const SpeedRow& row, int subnets, std::uint64_t seed) {
  const auto sampler = sampler_of(row, seed);
  std::vector<Subnet> all;
  for (int id = 0; id < subnets; ++id) all.push_back(sampler->next());
  return all;
}

/// From the first rank's beginning to the last one's end. Ranks of one node share their clock.
inline double seconds_on_all(const World& world, std::int64_t from, std::int64_t to) {
  MPI_Allreduce(MPI_IN_PLACE, &from, 1, MPI_INT64_T, MPI_MIN, world.comm);
  MPI_Allreduce(MPI_IN_PLACE, &to, 1, MPI_INT64_T, MPI_MAX, world.comm);
  return static_cast<double>(to - from) * 1e-9;
}
inline double seconds_on_all(const World& world, const std::function<void()>& call) {
  MPI_Barrier(world.comm);
  const std::int64_t from = now_ns();
  call();
  return seconds_on_all(world, from, now_ns());
}

struct SpeedUp {
  double simulated = 0, measured = 0;
};

/// Lets a worker train subnets whose batches nobody reads.
struct TrainedOnNothing : SubnetCalls {
  std::int64_t last_update = 0;

  void train(Worker& worker) {
    worker.waiting().set_crowded(true);
    worker.subnets()->answer_to(*this);
  }
  void load(const Subnet&, StepInput& input) override {
    input.valid = 8;
    input.rate = 1e-3;
  }
  std::int64_t count(std::int64_t) override { return 8; }
  void hear_part(const SubnetScalars&) override { last_update = now_ns(); }
};

/// A stream's length and the work of a rank, on paper and measured.
struct MeasuredStream {
  RoomsOnPaper paper;
  double seconds = 0;   ///< up to the last update: what then goes home is not the stream's
  double all_home = 0;  ///< seconds until that is there, too
  double busy = 0;      ///< share of that time in which this rank works
};

/// Runs a stream with the prices and rooms that the simulator has of it. `beside` may see the worker before
/// it trains, and behind that.
inline MeasuredStream measured_stream(const Config& given, const SpeedRow& row, const World& world,
                                      int subnets, std::uint64_t seed,
                                      const std::function<void(Worker&, bool trained)>& beside = {}) {
  Config config = given;
  config.train.steps = subnets;
  const std::vector<Subnet> all = stream_drawn(row, subnets, seed);
  RunPlan plan = make_run_plan(config, Purpose::training, all);
  MeasuredStream found{simulate_rooms(plan.outline, plan.evaluation.network, plan.subnets->paper.rules, all)};
  Worker worker(config, world, std::move(plan));
  TrainedOnNothing calls;
  calls.train(worker);
  worker.subnets()->begin(sampler_of(row, seed), 0);
  if (beside) beside(worker, false);
  MPI_Barrier(world.comm);
  const std::int64_t from = now_ns();
  worker.subnets()->train_to(subnets);
  found.all_home = seconds_on_all(world, from, now_ns());
  found.seconds = seconds_on_all(world, from, calls.last_update);
  const TimeSpent& spent = worker.executor().spent(worker.subnets()->script());
  found.busy = 1e-9 * static_cast<double>(spent.forward + spent.backward + spent.update) / found.all_home;
  if (beside) beside(worker, true);
  return found;
}

/// The speed of a stream over that of one stage.
inline SpeedUp speed_up_of(const SpeedRow& row, const World& world, int subnets, std::uint64_t seed) {
  const int stages = world.size / row.lanes;
  const TableFile prices(row.table, length_of_one(row, stages), row.move());
  const MeasuredStream found = measured_stream(run_of(row, stages, prices.path()), row, world, subnets, seed,
                                               [&](Worker& worker, bool) {
                                                 std::int64_t forward = 0;
                                                 for (const auto& candidates : worker.plan().outline.blocks)
                                                   for (const BlockCost& cost : candidates)
                                                     forward += cost.forward / std::ssize(candidates);
                                                 EXPECT_GE(forward / stages, row.forward);
                                               });
  return {found.paper.speed_up(), static_cast<double>(found.paper.one_stage) * 1e-9 / found.seconds};
}

inline double middle_of(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace mindpipe
