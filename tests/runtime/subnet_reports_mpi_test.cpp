// ranks: 2
#include "runtime/subnet_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "make_backend.h"
#include "runtime/supernet_runs.h"

// What stages know of subnets is told on rank 0 in the order of ids, however far ahead a rank is.
namespace mindpipe {
namespace {

/// Two lanes of one stage each, and what connects them.
struct TwoLanes {
  World world = all_ranks();
  Config config = config_of({.subnets = 8, .lanes = 2});
  Memory memory{Memory::Kind::host};
  std::unique_ptr<Backend> backend = make_backend(config, memory, 1, world);
  RunPlan plan = make_run_plan(config, Purpose::training, first_of_stream(config));
  Wiring wiring{config, world, plan, *backend, make_transports, nullptr};

  TwoLanes() {
    for (UnitCost& unit : plan.outline.units) unit.shared = false;  // nothing is told of windows
  }
};

TEST(SubnetReports, OfARankThatIsAStretchAheadAreTakenBeforeTheyAreExpected) {
  TwoLanes lanes;
  std::vector<std::int64_t> told;
  SubnetReports reports(lanes.plan.outline, lanes.wiring, 8, 8,
                        [&](const SubnetScalars& scalars) { told.push_back(scalars.subnet); });
  reports.begin(0);
  reports.expect(2);
  if (lanes.world.rank == 1) {  // subnet 5 overtakes subnets 1 and 3 in its lane
    for (const std::int64_t subnet : {5, 1, 3, 7}) reports.add({.subnet = subnet, .units = 1});
    MPI_Barrier(lanes.world.comm);
    reports.finish();
    return;
  }
  MPI_Barrier(lanes.world.comm);
  for (int turn = 0; turn < 1000; ++turn) reports.progress();
  reports.add({.subnet = 0, .units = 1});
  EXPECT_THAT(told, testing::ElementsAre(0, 1));
  reports.expect(8);
  for (const std::int64_t subnet : {2, 4, 6}) reports.add({.subnet = subnet, .units = 1});
  reports.finish();
  EXPECT_THAT(told, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace
}  // namespace mindpipe
