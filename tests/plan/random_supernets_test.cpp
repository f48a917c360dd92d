#include "random_supernets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/check.h"
#include "plan/network_on_paper.h"
#include "plan/run_plan.h"
#include "program/check/check_communication.h"
#include "program/clock/simulate.h"
#include "program/sample_space.h"
#include "supernet/sampler.h"

// Whatever the space, the grid, the window and the rooms: a supernet's lists are sound on all ranks and run
// to their end, or the supernet is refused before anything starts.
namespace mindpipe {
namespace {

using testing::IsEmpty;

TEST(RandomSupernets, AreOfAllKinds) {
  std::map<std::string, int> counts;
  for (int number = 1; number <= random_supernets; ++number) {
    const RandomSupernet drawn(number);
    ++counts[fmt::format("{} lanes", drawn.grid().supernet)];
    ++counts[fmt::format("{} shards a rank", drawn.shards_here())];
    ++counts[fmt::format("{} micro-batches", drawn.micro_batches())];
    ++counts["prices " + drawn.prices()];
    counts["own cuts"] += drawn.has_own_cuts() && drawn.grid().pipeline > 1 ? 1 : 0;
    counts["window 1"] += drawn.window() == 1 ? 1 : 0;
    counts["a window of fewer subnets than lanes"] += drawn.window() < drawn.grid().supernet ? 1 : 0;
    counts["a window of 16 or more"] += drawn.window() >= 16 ? 1 : 0;
    for (const auto& candidates : drawn.blocks()) ++counts[fmt::format("{} candidates", candidates.size())];
  }
  for (const int lanes : {1, 2, 3, 4, 5, 6, 8, 16}) EXPECT_GE(counts[fmt::format("{} lanes", lanes)], 2);
  for (int shards = 1; shards <= 7; ++shards) EXPECT_GE(counts[fmt::format("{} shards a rank", shards)], 10);
  for (int count = 1; count <= 8; ++count) EXPECT_GE(counts[fmt::format("{} candidates", count)], 100);
  for (const char* kind : {"1 micro-batches", "4 micro-batches", "prices paper", "prices equal",
                           "prices h200", "own cuts", "window 1", "a window of fewer subnets than lanes"})
    EXPECT_GE(counts[kind], 20) << kind;
  EXPECT_GE(counts["a window of 16 or more"], 10);
}

/// The plan of a run; none, with the sentence, where the run is refused.
std::optional<RunPlan> planned_or_refused(const Config& config, std::string& refusal) {
  try {
    return make_run_plan(config, Purpose::training);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration) << error.what();
    refusal = error.what();
    return std::nullopt;
  }
}

/// All ranks' lists are written, each stretch is checked as the planner gives it, and together they run to
/// their end.
void expect_sound(const RandomSupernet& drawn, const Config& config, const RunPlan& plan, int number) {
  Lots lots("lengths", number);
  const Network network = network_on_paper(config);
  const std::vector<Subnet> subnets = first_subnets(config);
  ASSERT_EQ(std::ssize(subnets), config.train.steps);
  SubnetRules rules = plan.subnets->paper.rules;
  if (lots.once_in(3)) rules.draws = number;
  try {
    const WholeProgram whole = whole_program(plan.outline, network, rules, subnets,
                                             {1 + lots.below(8), 1 + lots.below(20), 1 + lots.below(8)});
    Findings findings;
    check_partners(whole.program, findings);
    EXPECT_THAT(findings.take(), IsEmpty()) << drawn.name();
    EXPECT_THAT(errors_of_clock(plan.outline, network, rules, subnets, 17), IsEmpty()) << drawn.name();
    EXPECT_TRUE(simulate(whole.program, whole.durations, network).finished) << drawn.name();
  } catch (const Error& error) {
    ADD_FAILURE() << drawn.name() << ": " << error.what();
  }
}

TEST(RandomSupernets, HaveSoundListsThatRunToTheirEndOrAreRefused) {
  int refused = 0;
  for (int number = 1; number <= random_supernets; ++number) {
    const RandomSupernet drawn(number);
    std::string refusal;
    try {
      const Config config = drawn.read();
      if (const auto plan = planned_or_refused(config, refusal)) expect_sound(drawn, config, *plan, number);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration) << drawn.name() << ": " << error.what();
      refusal = error.what();
    }
    if (refusal.empty()) continue;
    ++refused;
    EXPECT_THAT(refusal, testing::AnyOf(testing::HasSubstr("supernet.cuts is own"),
                                        testing::HasSubstr("supernet.admission lets"),
                                        testing::HasSubstr("supernet.slots is")))
        << drawn.name();
  }
  RecordProperty("refused", refused);
  EXPECT_GE(refused, 5);
  EXPECT_LE(refused, random_supernets / 10);
}

}  // namespace
}  // namespace mindpipe
