#include "trace/host_reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// Four ranks of which the system counts nothing remarkable.
StepTrace quiet_trace() {
  StepTrace trace{.steps = {1, 2, 3}};
  trace.ranks.resize(4);
  for (RankTimes& rank : trace.ranks)
    rank.host.assign(3, {.run_delay = 10'000, .switches = 1, .outside = 5'000});
  return trace;
}

std::string reason(void (*happens)(HostCounts&), Cause::Kind kind = Cause::slow_rank) {
  StepTrace trace = quiet_trace();
  for (HostCounts& step : trace.ranks[2].host) happens(step);
  return likely_reason(trace, {.kind = kind, .rank = 2, .saves = 2'000'000});
}

TEST(HostReasons, AreWhatTheSystemCountsOfTheRankAloneAndExplainsWhatItCosts) {
  EXPECT_THAT(reason([](HostCounts& step) { step.run_delay = 3'000'000; }),
              HasSubstr("its processor ran other processes for 3.0 ms of a step"));
  EXPECT_THAT(reason([](HostCounts& step) { step.faults = 2; }), HasSubstr("2.0 pages of its memory"));
  EXPECT_THAT(reason([](HostCounts& step) { step.outside = 4'000'000; }, Cause::host),
              HasSubstr("pass between its steps"));
  EXPECT_THAT(reason([](HostCounts& step) { step.switches = 40; }),
              HasSubstr("leave its processor 39 times"));
  EXPECT_THAT(reason([](HostCounts& step) { step.migrations = 1; }), HasSubstr("processor to processor"));
  EXPECT_THAT(reason([](HostCounts& step) { step.run_delay = 60'000; }), HasSubstr("which is a guess"))
      << "so little delay explains nothing";
}

TEST(HostReasons, AreNoneWhereNothingWasCountedOrNoRankIsNamed) {
  StepTrace trace = quiet_trace();
  EXPECT_EQ(likely_reason(trace, {.kind = Cause::slow_stage, .stage = 1, .saves = 1}), "");
  for (RankTimes& rank : trace.ranks) rank.host.clear();
  EXPECT_EQ(likely_reason(trace, {.kind = Cause::slow_rank, .rank = 2, .saves = 1}), "");
}

TEST(HostReasons, SayThatTheMachineIsBusyWhereTheMedianRankIsDelayed) {
  StepTrace trace = quiet_trace();
  EXPECT_EQ(busy_machine(trace, 100'000'000), "");
  for (HostCounts& step : trace.ranks[0].host) step.run_delay = 50'000'000;
  EXPECT_EQ(busy_machine(trace, 100'000'000), "") << "one rank alone is not the machine";
  for (RankTimes& rank : trace.ranks)
    for (HostCounts& step : rank.host) step.run_delay = 5'000'000;
  EXPECT_THAT(busy_machine(trace, 100'000'000), HasSubstr("ran other processes for 5.0 ms of a step (5 %)"));
}

TEST(HostReasons, DelayThatAllRanksHaveIsNoReason) {
  StepTrace trace = quiet_trace();
  for (RankTimes& rank : trace.ranks)
    for (HostCounts& step : rank.host) step.run_delay = 5'000'000;
  EXPECT_THAT(likely_reason(trace, {.kind = Cause::slow_rank, .rank = 2, .saves = 2'000'000}),
              HasSubstr("which is a guess"));
}

}  // namespace
}  // namespace mindpipe
