// thorough ranks: 2
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "comm/fault_points.h"
#include "operations/decision.h"
#include "runtime/supernet_runs.h"

// What may go wrong where subnets are in flight, one at a time, and who finds it:
//
//   a conflict dropped                              checker   Stretches.AConflictThatIsDroppedIsFound
//   no owner awaited at all                         checker   InSubnets/IsFound: AForwardBeforeAnOwnersUpdate
//                                                   hash      Subnets.HaveOtherBitsInEveryOtherOrder
//                                                   audit     SubnetTrace.OfAnotherOrderIsFoundOut
//   the update of a subnet left out                 checker   InSubnets/IsFound: AnUpdateThatIsLeftOut
//   the update of one unit left out                 hash      here, units.update
//   what all share one window early                 checker   InSubnets/IsFound: WhatAllShareOneWindowEarly
//                                                   hash      here, AWindowEarly
//   one micro-batch's integers missing              hash      here, windows.add
//   a key, a rate, a counter from a local clock     hash      here, ALocalClock
//   micro-batches of a backward swapped             checker   InSubnets/IsFound: MicroBatchesOfABackward...
//   a slot received into one reader too early       checker   InSubnets/IsFound: ASlotThatIsReceivedInto...
//   the oldest subnet's slots given away            planner   CausalPlanner.SaysThatItStandsStill...
//   its slab given away                             planner   CausalPlanner.SaysThatItStandsStill...
//   arrivals in rings two and four deep             checker   Stretches.ArrivalsInRingsAreRefused...
//   a move without masters, moments, counters       hash      here, moves.master, .moment, .applied
//   a unit of a move left out, a stale mirror       hash      here, moves.unit, on lanes and with own cuts
//   a version other than the one that is due        version   here, AVersionThatIsNotDue
//   a move without the version                      version   tests/app/stale_version.sh
//   a move before the update it follows             checker   OnLanes/IsFound: AMoveBeforeTheUpdateItFollows
//   a part too few, a unit of a message left out    checker   OnLanes/IsFound: APartTooFew,
//   AUnitOfAMessage... a message, a sum, a clearing, a fold left out   hash      here, each that a run asks
//   for
namespace mindpipe {
namespace {

class SubnetMutations : public ::testing::Test {
 protected:
  static Config config_on(const GridConfig& grid, bool sequence_parallel = false) {
    return config_of(SupernetCase{.pipeline = grid.pipeline,
                                  .data = grid.data,
                                  .tensor = grid.tensor,
                                  .sequence_parallel = sequence_parallel,
                                  .subnets = 24,
                                  .lanes = grid.supernet});
  }
  /// Where the bits of a run that goes wrong differ from those of one after the other, on any rank.
  std::string noticed(const Config& config, const SupernetWatch& watch = {}) const {
    std::string text;
    try {
      text = difference(trained(config, world, 3, watch), one_after_the_other(config));
    } catch (const Error& error) {
      text = error.what();  // replicas that differ
    }
    int here = text.empty() ? 0 : 1, anywhere = 0;
    MPI_Allreduce(&here, &anywhere, 1, MPI_INT, MPI_MAX, world.comm);
    return anywhere == 0 ? "" : text.empty() ? "noticed by the other rank" : text;
  }
  std::string noticed_without(const Config& config, const std::string& name, int number) const {
    const std::string text = noticed(config, {.before = [&](Worker&) { set_mutation(name, number); }});
    set_mutation("");
    return text;
  }
  /// What a run can leave out, with how often, on the rank that asks most often.
  std::map<std::string, int> mutable_things(const Config& config) const {
    std::map<std::string, int> counts;
    trained(
        config, world, 3,
        {.before = [](Worker&) { set_mutation(""); }, .after = [&](Worker&) { counts = mutable_calls(); }});
    for (const auto& name : names_on_all(counts)) {
      int most = counts[name];
      MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, world.comm);
      counts[name] = most;
    }
    return counts;
  }
  /// The names that either rank has, in one order on both.
  std::vector<std::string> names_on_all(const std::map<std::string, int>& counts) const {
    std::vector<std::string> all;
    for (int rank = 0; rank < world.size; ++rank) {
      std::string joined;
      for (const auto& [name, count] : counts) joined += name + "\n";
      int size = static_cast<int>(joined.size());
      MPI_Bcast(&size, 1, MPI_INT, rank, world.comm);
      joined.resize(static_cast<std::size_t>(size));
      MPI_Bcast(joined.data(), size, MPI_CHAR, rank, world.comm);
      for (std::size_t first = 0; first < joined.size(); first = joined.find('\n', first) + 1)
        all.push_back(joined.substr(first, joined.find('\n', first) - first));
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  World world = all_ranks();
};

TEST_F(SubnetMutations, OfWhatARunDoesAreNoticed) {
  Config mirrors = config_on({1, 2, 1, 1});
  mirrors.supernet.cuts = SubnetCuts::own;
  for (const Config& config : {config_on({1, 2, 1, 1}), config_on({1, 1, 2, 1}),
                               config_on({1, 1, 1, 2}, true), config_on({2, 1, 1, 1}), mirrors}) {
    const bool moves = config.grid.supernet > 1 || config.supernet.cuts == SubnetCuts::own;
    ASSERT_EQ(noticed_without(config, "nothing.at_all", -1), "");
    std::string said;
    for (const auto& [name, count] : mutable_things(config)) {
      if (count == 0) continue;
      if (name.starts_with(fmt::format("message.{}.", SubnetReports::channel))) continue;  // no weight's
      // A version that has not come ends one rank, for which the other would wait: AVersionThatIsNotDue, and
      // tests/app/stale_version.sh.
      if (name == "moves.version") continue;
      if (name.starts_with(fmt::format("message.{}.", static_cast<int>(Payload::unit_state)))) continue;
      said += fmt::format(" {} x {}", count, name);
      if (name == "pipeline.sum_integers") continue;  // of versions at the beginning: all are 0
      // The first users of a slab may find zeros there, whether it is cleared or not; and a unit that moves
      // for its first user is where it comes to as it was initialised.
      const int early = name == "gradients.clear" ? count / 4 : name.starts_with("moves.") ? count / 2 : 0;
      // A subnet may hardly read its source: the first of the four shared units then has a gradient of 0.
      const int middle = name == "windows.add" ? count / 2 + 1 : count / 2;
      for (const int number : std::set<int>{early, middle, count - 1})
        EXPECT_NE(noticed_without(config, name, number), "")
            << name << " number " << number << " of " << count;
    }
    EXPECT_NE(said.find("units.update"), std::string::npos);
    for (const char* part : {"moves.master", "moves.moment", "moves.applied", "moves.unit"})
      EXPECT_EQ(said.find(part) != std::string::npos, moves) << part;
    if (world.rank == 0) std::printf("left out, one at a time:%s\n", said.c_str());
  }
}

TEST_F(SubnetMutations, AVersionThatIsNotDueEndsTheRun) {
  const World alone{};
  for (const bool shared : {false, true}) {
    Worker* here = nullptr;
    std::string said;
    try {
      trained(config_on({1, 1, 1, 1}), alone, 3,
              {.before = [&](Worker& worker) { here = &worker; },
               .loaded =
                   [&](const Subnet& subnet, StepInput&) {
                     if (subnet.id != 9) return;
                     for (const int unit : here->stage().local_units())
                       if (here->stage().model().is_shared(unit) == shared)
                         here->residency().values().wrote(unit);
                   }});
    } catch (const Error& error) {
      said = error.what();
    }
    EXPECT_NE(said.find(shared ? "which all subnets share" : "older subnets use it"), std::string::npos)
        << said;
  }
}

// Keys, rates and counts of uses are functions of ids. A rank that takes its own clock instead, which counts
// what it has come to do in the order in which it does it, has other bits.
TEST_F(SubnetMutations, ALocalClockIsNoticed) {
  const Config config = config_on({1, 2, 1, 1});
  std::int64_t clock = 0;
  EXPECT_NE(noticed(config, {.loaded = [&](const Subnet&, StepInput& input) { input.step = clock++; }}), "")
      << "key";
  clock = 0;
  EXPECT_NE(noticed(config, {.loaded =
                                 [&](const Subnet&, StepInput& input) {
                                   input.rate = rate_at(config.optimizer.rate, clock++, config.train.steps);
                                 }}),
            "")
      << "rate";
  clock = 0;
  Worker* here = nullptr;
  const auto count = [&](const Subnet&, StepInput&) {
    const double uses = static_cast<double>(clock++);
    for (const int unit : here->stage().local_units())
      here->backend().upload(&uses, here->updates().decisions().of(unit).range(Decision::applied_steps, 1));
  };
  EXPECT_NE(noticed(config, {.before = [&](Worker& worker) { here = &worker; }, .loaded = count}), "")
      << "counter";
}

TEST_F(SubnetMutations, AWindowEarlyIsNoticed) {
  const Config config = config_on({1, 2, 1, 1});
  Worker* here = nullptr;
  EXPECT_NE(noticed(config, {.before = [&](Worker& worker) { here = &worker; },
                             .loaded =
                                 [&](const Subnet& subnet, StepInput&) {
                                   if (subnet.id != 20) return;
                                   const UnitValues& values = here->residency().values();
                                   for (const int unit : here->stage().local_units())
                                     if (here->stage().model().is_shared(unit))
                                       here->backend().copy(values.read_by(subnet.id - 8, unit),
                                                            values.read_by(subnet.id, unit));
                                 }}),
            "");
}

}  // namespace
}  // namespace mindpipe
