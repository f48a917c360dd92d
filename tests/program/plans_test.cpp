#include "program/plans.h"

#include <gtest/gtest.h>

#include "program/sample_outline.h"
#include "program/steps_of_sizes.h"

// Plans are what they were when tests/golden/plans.txt was made. Whoever changes prices or the rule makes it
// anew with MINDPIPE_SAY_PLANS=1 and says why.
namespace mindpipe {
namespace {

struct SpaceShape {
  const char* name;
  int stages, candidates, subnets;
  bool on_h200;
};

struct PlanCase {
  SpaceShape shape;
  Draw draw;
  int micro_batches, lanes;
  bool own_cuts;
  int data = 2;

  std::string name() const {
    constexpr const char* draws[] = {"uniform", "permutation", "spaced"};
    return fmt::format("{}, {}, {} micro-batch{}, {} lane{}, {} cuts{}", shape.name,
                       draws[static_cast<int>(draw)], micro_batches, micro_batches == 1 ? "" : "es", lanes,
                       lanes == 1 ? "" : "s", own_cuts ? "own" : "home",
                       data == 1 ? ", no sums over data" : "");
  }
  /// With all that takes time: gradients that are zeroed and summed over data, sums inside passes, a table
  /// that all share, moves.
  Outline outline() const {
    Outline made = sample_space(shape.stages, shape.candidates, micro_batches);
    if (shape.on_h200) price_h200(made);
    give_lanes(made, lanes, 0.2);
    share_a_table(made);
    made.own_cuts = own_cuts;
    made.data = data;
    for (UnitCost& unit : made.units) unit.clear = 2'000;
    for (auto& block : made.blocks)
      for (BlockCost& cost : block) cost.forward_sums = cost.backward_sums = {2, 1000};
    return made;
  }
  std::string summary() const {
    const Outline made = outline();
    Network network = sample_network(micro_batches);
    network.data = {5'000, 100'000};
    network.tensor = {1'000, 1'000};
    network.between[{0, 1}] = {9'000, 10'000};
    SubnetRules rules{.admission = 2 * made.ranks(), .window = 24, .holds_back = true};
    rules.slots.assign(made.stages, 3 * micro_batches);
    rules.slabs.assign(made.stages, 2);
    const auto subnets = sample_subnets(made, draw, shape.subnets, 1);
    CausalPlanner planner(made, network, rules);
    return summary_of(planned(planner, subnets));
  }
};

TEST(Plans, OfSubnetsStartWhatTheyDidWhenTheFileWasMade) {
  for (const SpaceShape& shape :
       {SpaceShape{"nlp.c0 on 8 stages", 8, 96, 96, false}, SpaceShape{"nlp.c3 on 8 stages", 8, 24, 96, true},
        SpaceShape{"a small space on 3 stages", 3, 3, 40, true}})
    for (const Draw draw : {Draw::uniform, Draw::permutation, Draw::spaced})
      for (const int micro_batches : {1, 4})
        for (const int lanes : {1, 2, 4})
          for (const bool own_cuts : {false, true})
            for (const int data : {1, 2}) {
              if (data == 1 && draw != Draw::uniform) continue;
              const PlanCase one{shape, draw, micro_batches, lanes, own_cuts, data};
              const std::string got = one.summary();
              EXPECT_EQ(got, golden_plan(one.name(), got)) << one.name();
            }
}

class PlansOfZero : public ::testing::TestWithParam<int> {};

TEST_P(PlansOfZero, EveryScheduleTakesTheTimeAndMemoryItDidOnEverySize) {
  for (const std::string& schedule : all_schedules()) {
    const bool is_searched =
        schedule_named(schedule) == ScheduleKind::searched;  // searched_plans_test.cpp has the rest
    const int fewest = is_in_v(schedule) ? 2 : 1, most = has_chunks(schedule) ? 3 : fewest;
    for (int chunks = fewest; chunks <= most; ++chunks) {
      const StepsSummary steps = steps_of_sizes(schedule, chunks, GetParam(), {fewest, is_searched ? 4 : 8});
      const std::string name =
          fmt::format("{} of {} chunk{}{}, zero {}", schedule, chunks, chunks == 1 ? "" : "s",
                      is_searched ? " on 2 to 4 stages" : "", GetParam());
      EXPECT_EQ(steps.text(), golden_plan(name, steps.text())) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, PlansOfZero, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace mindpipe
