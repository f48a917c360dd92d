#include "comm/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "comm/affinity.h"

namespace mindpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Ledger, AddsUpByAxisAndClassAndPrintsWhatWasUsed) {
  TrafficLedger ledger;
  ledger.add(Axis::tensor, TrafficClass::tensor, 3 << 20, 0.5);
  ledger.add(Axis::tensor, TrafficClass::tensor, 1 << 20, 0.5);
  ledger.add(Axis::data, TrafficClass::gradients, 2 << 20, 1);
  EXPECT_EQ(ledger.of(Axis::tensor, TrafficClass::tensor), (TrafficLedger::Sent{2, 4 << 20, 1.0}));
  EXPECT_EQ(ledger.total(), (TrafficLedger::Sent{3, 6 << 20, 2.0}));
  const std::string table = ledger.table();
  EXPECT_THAT(table, HasSubstr("tensor     tensor              2          4.000      1.000        4.0"));
  EXPECT_THAT(table, HasSubstr("data       gradients"));
  EXPECT_THAT(table, HasSubstr("all                            3          6.000"));
  EXPECT_THAT(table, Not(HasSubstr("pipeline")));
  ledger.clear();
  EXPECT_EQ(ledger.total(), TrafficLedger::Sent{});
}

RankPlace place(const char* host, int threads, int first, int processors) {
  RankPlace p;
  std::strncpy(p.host, host, sizeof p.host - 1);
  p.threads = threads;
  p.processors_there = 8;
  for (int i = 0; i < processors; ++i) CPU_SET(first + i, &p.processors);
  return p;
}

TEST(Affinity, OneLineForEachNodeAndNoWarningWhenAllIsWell) {
  const std::vector<RankPlace> places = {place("a", 2, 0, 2), place("a", 2, 2, 2), place("b", 1, 0, 1)};
  EXPECT_EQ(affinity_report(places),
            "a: 2 ranks (0 to 1), 4 processors, 4 threads; rank 0 on 0-1, rank 1 on 2-3\n"
            "b: 1 rank (2), 1 processor, 1 thread; on 0\n");
  EXPECT_FALSE(is_crowded(places, 0));
}

TEST(Affinity, WarnsOfMoreThreadsThanProcessors) {
  const std::vector<RankPlace> bound = {place("a", 4, 0, 1), place("a", 4, 1, 1)};
  EXPECT_THAT(
      affinity_report(bound),
      HasSubstr("warning: ranks 0, 1 on a run 4 threads each but may use 1 processor (all its threads "
                "share them); start with mpirun --bind-to none"));
  const std::vector<RankPlace> crowded = {place("a", 1, 0, 2), place("a", 1, 0, 2), place("a", 1, 0, 2),
                                          place("b", 1, 0, 2)};
  EXPECT_THAT(affinity_report(crowded), HasSubstr("warning: a has 3 threads on 2 processors"));
  EXPECT_THAT(affinity_report(crowded), HasSubstr("start fewer ranks there\n"))
      << "no rank can have fewer threads than one";
  const std::vector<RankPlace> eager = {place("a", 2, 0, 2), place("a", 2, 0, 2)};
  EXPECT_THAT(affinity_report(eager), HasSubstr("start fewer ranks there, or set device.threads=1\n"));
  EXPECT_TRUE(is_crowded(crowded, 1));
  EXPECT_FALSE(is_crowded(crowded, 3));
}

TEST(Affinity, SaysOnceForRanksAlikeWhatHelpsWhereTheMachineHasNoMoreProcessors) {
  std::vector<RankPlace> places = {place("a", 3, 0, 2), place("a", 3, 0, 2), place("b", 3, 0, 2)};
  for (RankPlace& p : places) p.processors_there = 2;
  EXPECT_EQ(affinity_report(places),
            "a: 2 ranks (0 to 1), 2 processors, 6 threads; on 0-1\n"
            "warning: ranks 0, 1 on a run 3 threads each but may use 2 processors, all of that machine (all "
            "its threads share them); set "
            "device.threads=1, or start fewer ranks there\n"
            "b: 1 rank (2), 2 processors, 3 threads; on 0-1\n"
            "warning: rank 2 on b runs 3 threads but may use 2 processors, all of that machine (all its "
            "threads share them); set "
            "device.threads=2\n");
  places.back().processors_there = 4;
  EXPECT_THAT(
      affinity_report(places),
      HasSubstr(
          "rank 2 on b runs 3 threads but may use 2 processors (all its threads share them); start with "
          "mpirun --bind-to none or srun --cpus-per-task=3, or set device.threads=2\n"));
}

TEST(Affinity, WarnsOfRanksThatShareAProcessorWhileOthersAreIdle) {
  const std::vector<RankPlace> places = {place("a", 1, 0, 1), place("a", 1, 0, 1), place("a", 1, 1, 7)};
  EXPECT_THAT(
      affinity_report(places),
      HasSubstr("warning: on a, the ranks 0, 1 have 2 threads on 1 processor (0): ranks will wait for each "
                "other's turns; start with mpirun --bind-to none\n"));
  EXPECT_TRUE(is_crowded(places, 0));
  EXPECT_FALSE(is_crowded(places, 2));
  const std::vector<RankPlace> apart = {place("a", 1, 0, 1), place("a", 1, 1, 1), place("a", 6, 2, 6)};
  EXPECT_THAT(affinity_report(apart), Not(HasSubstr("warning")));
}

TEST(Affinity, RefusesMoreThanSixteenThreadsOnAProcessor) {
  EXPECT_NO_THROW(require_sensible(32, place("a", 1, 0, 2)));
  try {
    require_sensible(33, place("a", 1, 0, 2));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_THAT(error.what(), HasSubstr("is 33, but a rank on a may use 2 processors (at most 32 threads"));
    EXPECT_THAT(error.what(), HasSubstr("set device.threads=2, or 0"));
  }
}

}  // namespace
}  // namespace mindpipe
