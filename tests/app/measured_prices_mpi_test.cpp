// thorough ranks: 4
// undisturbed: what others compute spoils a measurement
#include "app/train/measured_prices.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>

#include "plan/set_prices.h"
#include "runtime/speed_runs.h"

// A machine that is not what its table of prices says: what a run on it measures, and what the next run is
// planned by.
namespace mindpipe {
namespace {

const SpeedRow measured_row{"h200", "nlp.c3", SamplerKind::permutation, 2};

Config measured_run(int stages, const std::string& prices) {
  Config config = run_of(measured_row, stages, prices);
  config.train.steps = 96;
  config.supernet.sampler = "permutation";
  config.seed = 1;
  return config;
}

/// The prices that a run measures whose stages take so many times as long as its table says.
std::optional<FittedPrices> measured_with(const World& world, const std::vector<double>& stages,
                                          const TableFile& table) {
  const Config config = measured_run(world.size, table.path());
  const std::vector<Subnet> subnets = stream_drawn(measured_row, config.train.steps, config.seed);
  Worker worker(config, world, make_run_plan(config, Purpose::training, subnets));
  TrainedOnNothing calls;
  calls.train(worker);
  worker.subnets()->script().pacer =
      Pacer([&](std::int64_t time) { return std::llround(stages[world.rank] * static_cast<double>(time)); });
  worker.subnets()->begin(sampler_of(measured_row, config.seed), 0);
  worker.subnets()->train_to(config.train.steps);
  return measured_prices(worker, world.rank == 0);
}

/// How long the next run takes on paper by what was measured, over what the simulator says of the true times.
double planned_over_true(const FittedPrices& measured, const TableFile& table,
                         const std::vector<double>& stages) {
  const int count = static_cast<int>(stages.size());
  const std::string file = table.path() + ".measured";
  std::ofstream(file) << text_of(measured, "runs/before");
  const Config next = measured_run(count, file);
  const std::vector<Subnet> subnets = stream_drawn(measured_row, next.train.steps, next.seed);
  const RunPlan plan = make_run_plan(next, Purpose::training, subnets);
  std::filesystem::remove(file);
  Outline truly = plan.outline;
  set_prices(truly, read_prices(table.path(), next.model.supernet.space), count);
  truly.slower = stages;
  const auto time_by = [&](const Outline& outline) {
    return static_cast<double>(
        simulate_rooms(outline, plan.evaluation.network, plan.subnets->paper.rules, subnets).time);
  };
  return time_by(plan.outline) / time_by(truly);
}

/// Processor seconds that this machine has spent beside this job's own, since a start that stays.
double seconds_of_others(const World& world) {
  std::string word;
  double ticks = 0, busy = 0;
  std::ifstream stat("/proc/stat");
  stat >> word;
  for (int field = 0; field < 8 && stat >> ticks; ++field)
    if (field != 3 && field != 4) busy += ticks;  // neither idle nor waiting for a disk
  double own = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_SUM, world.comm);
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK)) - own;
}

/// One of three undisturbed runs must hold. Runs beside which another process takes the processors say
/// nothing about prices: where no three of six are undisturbed, the test is skipped.
TEST(MeasuredPrices, OfAMachineWithASlowStageAreWhatTheNextRunIsPlannedBy) {
  const World world = all_ranks();
  const std::vector<double> stages{1, 1, 1.2, 1};
  const TableFile table(measured_row.table, length_of_one(measured_row, world.size));
  int undisturbed = 0;
  for (int attempt = 0; attempt < 6 && undisturbed < 3; ++attempt) {
    const auto begun = std::chrono::steady_clock::now();
    const double others_before = seconds_of_others(world);
    const auto measured = measured_with(world, stages, table);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    const double share_of_others = (seconds_of_others(world) - others_before) / took.count();
    int disturbed = share_of_others > 0.1 ? 1 : 0;
    MPI_Bcast(&disturbed, 1, MPI_INT, 0, world.comm);
    ASSERT_EQ(measured.has_value(), world.rank == 0);
    int is_near = 0;
    if (measured) {
      const double ratio = planned_over_true(*measured, table, stages);
      std::printf(
          "the next run's plan takes %.4f of what the simulator says of the true times, beside %.2f "
          "processors of others\n",
          ratio, share_of_others);
      is_near = std::abs(ratio - 1) <= 0.02 ? 1 : 0;
      for (int stage = 0; stage < world.size; ++stage)
        if (std::abs(measured->stages[stage] - stages[stage]) > 0.1) is_near = 0;
      EXPECT_TRUE(is_near == 1 || disturbed == 1 || undisturbed < 2)
          << text_of(*measured, "the last attempt");
    }
    MPI_Bcast(&is_near, 1, MPI_INT, 0, world.comm);
    if (is_near == 1) return;
    if (disturbed == 0) ++undisturbed;
  }
  if (undisturbed < 3) GTEST_SKIP() << "other processes take the processors";
}

}  // namespace
}  // namespace mindpipe
