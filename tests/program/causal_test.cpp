#include "program/causal/causal_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/check.h"
#include "program/sample_space.h"

// The rule of causal order, in virtual time: what it can give, which rooms it needs, that it never stands
// still with the rooms that it asks for.
namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// The sum of all passes of 480 subnets over the time that the planner sees.
double speed_up(const Outline& outline, const SubnetRules& rules, Draw draw, unsigned seed) {
  CausalPlanner planner(outline, sample_network(outline.micro_batches), rules);
  std::int64_t sum = 0;
  for (const Task& start : planned(planner, sample_subnets(outline, draw, 480, seed)))
    if (start.kind == TaskKind::forward || start.kind == TaskKind::backward) sum += start.end - start.start;
  return static_cast<double>(sum) / static_cast<double>(planner.time());
}

double median_speed_up(int stages, int candidates, int micro_batches, Draw draw, bool holds_back = false) {
  const Outline outline = sample_space(stages, candidates, micro_batches);
  const SubnetRules rules{.admission = 2 * stages, .holds_back = holds_back};
  std::vector<double> found;
  for (unsigned seed = 1; seed <= 5; ++seed) found.push_back(speed_up(outline, rules, draw, seed));
  std::sort(found.begin(), found.end());
  return found[2];
}

TEST(CausalPlanner, GivesTheSpeedUpThatTheRuleCanGive) {
  struct Known {
    int stages, candidates, micro_batches;
    Draw draw;
    double speed_up, streams_differ_by;
  };
  for (const Known& known : {Known{4, 96, 1, Draw::uniform, 2.56, 0.04},
                             {4, 24, 4, Draw::uniform, 2.73, 0.03},
                             {8, 96, 1, Draw::uniform, 2.99, 0.04},
                             {8, 24, 1, Draw::uniform, 1.49, 0.04},
                             {8, 96, 4, Draw::uniform, 6.24, 0.03},
                             {8, 24, 4, Draw::uniform, 3.87, 0.03},
                             {8, 96, 1, Draw::permutation, 7.68, 0.01},
                             {8, 24, 1, Draw::permutation, 6.74, 0.015},
                             {8, 96, 4, Draw::permutation, 7.94, 0.005},
                             {8, 24, 4, Draw::permutation, 7.78, 0.01},
                             {8, 24, 1, Draw::spaced, 7.86, 0.005},
                             {8, 96, 4, Draw::spaced, 7.94, 0.005},
                             {16, 24, 4, Draw::spaced, 15.82, 0.005}})
    EXPECT_NEAR(median_speed_up(known.stages, known.candidates, known.micro_batches, known.draw),
                known.speed_up, known.streams_differ_by * known.speed_up)
        << known.stages << " stages, " << known.candidates << " candidates, " << known.micro_batches
        << " micro-batches, draw " << static_cast<int>(known.draw);
}

TEST(CausalPlanner, HoldingForwardsBackForABackwardThatArrivesIsWorthAPercent) {
  EXPECT_NEAR(median_speed_up(8, 96, 1, Draw::permutation, true), 7.79, 0.03);
  EXPECT_NEAR(median_speed_up(8, 24, 1, Draw::permutation, true), 6.88, 0.10);
}

TEST(CausalPlanner, RunsOneAfterTheOtherWhereEverythingConflicts) {
  const Outline outline = sample_space(8, 1, 1);
  EXPECT_NEAR(speed_up(outline, {.admission = 16}, Draw::uniform, 1), 1, 0.05);
}

TEST(CausalPlanner, FillsAndDrainsWhereNothingConflicts) {
  const Outline outline = sample_space(8, 255, 1);
  const Network network = sample_network(1);
  CausalPlanner planner(outline, network, {.admission = 16});
  std::vector<Subnet> subnets = sample_subnets(outline, Draw::permutation, 240, 1);
  std::int64_t busy = 0;
  for (const Task& start : planned(planner, subnets))
    if (is_work_of_subnet(start)) busy += start.end - start.start;
  const double fill_and_drain = 7.0 / (240 + 7);
  EXPECT_LT(1 - static_cast<double>(busy) / 8 / static_cast<double>(planner.time()), fill_and_drain + 0.03);
}

// The order of a known example: subnets 2, 7, 6, 5, 6 share a layer with 1, 5, 3, 4, 5 on stages 0, 0, 1,
// 2, 3.
TEST(CausalPlanner, LetsLaterSubnetsOvertakeAnOwnerThatIsAwaited) {
  Outline outline = sample_space(4, 10, 1);
  const int last_of_stage[] = {0, 12, 24, 36};
  std::vector<Subnet> subnets;
  for (int id = 0; id < 9; ++id) subnets.push_back({id, std::vector<std::uint8_t>(48, id)});
  const auto share = [&](int stage, int first, int later) {
    subnets[later].choice[last_of_stage[stage] + later % 3] = static_cast<std::uint8_t>(first);
  };
  share(0, 1, 2);
  share(0, 5, 7);
  share(1, 3, 6);
  share(2, 4, 5);
  share(3, 5, 6);
  CausalPlanner planner(outline, {}, {.admission = 8});
  std::vector<std::int64_t> forwards;
  for (const Task& start : planned(planner, subnets)) {
    if (start.rank != 0 || (start.kind != TaskKind::forward && start.kind != TaskKind::backward)) continue;
    if (start.kind == TaskKind::backward && start.owner.number == 1) break;
    if (start.kind == TaskKind::forward) forwards.push_back(start.owner.number);
  }
  EXPECT_THAT(forwards, testing::IsSupersetOf({0, 1, 3, 4, 5, 6}));
  EXPECT_THAT(forwards, testing::Not(testing::Contains(2)));
}

TEST(CausalPlanner, EndsWithTheFewestRoomsWhateverWaits) {
  for (const int micro_batches : {1, 4})
    for (const unsigned seed : {1u, 2u, 3u}) {
      const Outline outline = sample_space(8, 24, micro_batches);
      SubnetRules rules{.admission = 16};
      rules.slots.assign(8, micro_batches);
      rules.slabs.assign(8, 1);
      CausalPlanner planner(outline, sample_network(micro_batches), rules);
      planned(planner, sample_subnets(outline, Draw::uniform, 200, seed));
      EXPECT_EQ(planner.oldest(), 200);
      for (int stage = 0; stage < 8; ++stage) EXPECT_EQ(planner.most_slots(stage), micro_batches);
    }
}

/// How many of five uniform streams stand still on 8 stages with these rooms and slots.
int streams_that_stand_still(int micro_batches, SubnetRules rules, const std::vector<int>& slots) {
  const Outline outline = sample_space(8, 24, micro_batches);
  rules.slots = slots;
  int stand_still = 0;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CausalPlanner planner(outline, sample_network(micro_batches), rules);
    try {
      planned(planner, sample_subnets(outline, Draw::uniform, 260, seed));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  testing::AllOf(HasSubstr("everything stands still"), HasSubstr(" has not ended, subnet "),
                                 HasSubstr(" waits for a "), HasSubstr("Another supernet.admission")));
      ++stand_still;
    }
  }
  return stand_still;
}

// Later stages have fewer slots: those that wait there for an older subnet's update can hold all of a
// stage's.
TEST(CausalPlanner, SaysThatItStandsStillWhereTheSlotsOfTheOldestSubnetAreGivenAway) {
  for (const int micro_batches : {1, 4}) {
    std::vector<int> slots{4, 3, 3, 2, 2, 1, 1, 1};
    for (int& count : slots) count *= micro_batches;
    EXPECT_EQ(streams_that_stand_still(micro_batches, {.admission = 16, .keeps_slots = false}, slots), 5);
    EXPECT_EQ(streams_that_stand_still(micro_batches, {.admission = 16}, slots), 0);
  }
}

// Where slots are many a slab alone never stands in the way: a subnet that holds one waits for its other
// micro-batches, and these for slots.
TEST(CausalPlanner, SaysThatItStandsStillWhereTheSlabOfTheOldestSubnetIsGivenAway) {
  const std::vector<int> slabs(8, 1), slots(8, 5);
  EXPECT_GT(streams_that_stand_still(4, {.admission = 16, .slabs = slabs, .keeps_slab = false}, slots), 0);
  EXPECT_EQ(streams_that_stand_still(4, {.admission = 16, .slabs = slabs}, slots), 0);
}

TEST(CausalPlanner, AnyOrderOfWhatMayRunKeepsTheRuleAndEndsWithTheFewestRooms) {
  for (const std::uint64_t draws : {1, 2, 3}) {
    Outline outline = sample_space(8, 6, 2);
    share_a_table(outline);
    SubnetRules rules{.admission = 16, .window = 8, .draws = draws};
    rules.slots.assign(8, 2);
    rules.slabs.assign(8, 1);
    const auto subnets = sample_subnets(outline, Draw::uniform, 150, 1);
    const WholeProgram one = whole_program(outline, sample_network(2), rules, subnets, {40}),
                       again = whole_program(outline, sample_network(2), rules, subnets, {40});
    EXPECT_EQ(one.program.ranks, again.program.ranks);
    rules.draws = 0;
    EXPECT_NE(one.program.ranks,
              whole_program(outline, sample_network(2), rules, subnets, {40}).program.ranks);
  }
}

TEST(CausalPlanner, SaysThatItStandsStillWhereAGroupThatIsUpdatedTogetherHasTooFewSlabs) {
  const Outline outline = sample_space(4, 24, 1);
  SubnetRules rules{.order = SubnetOrder::bulk, .admission = 8, .slabs = {3, 3, 3, 3}};
  CausalPlanner planner(outline, sample_network(1), rules);
  const auto subnets = sample_subnets(outline, Draw::uniform, 20, 1);
  EXPECT_THAT([&] { planned(planner, subnets); },
              ThrowsMessage<Error>(HasSubstr("waits for a gradient slab on rank 3 (lane 0, stage 3)")));
}

TEST(CausalPlanner, TakesTheSlotsOfItsOwnFigures) {
  const Outline outline = sample_space(8, 96, 4);
  SubnetRules rules{.admission = 16};
  const double all = speed_up(outline, rules, Draw::permutation, 1);
  rules.slots.assign(8, 24);  // for six subnets
  EXPECT_GT(speed_up(outline, rules, Draw::permutation, 1), 0.99 * all);
}

TEST(CausalPlanner, APlanDoesNotDependOnHowManySubnetsItKnew) {
  Outline outline = sample_space(4, 6, 2);
  share_a_table(outline);
  const Network network = sample_network(2);
  const SubnetRules rules{.admission = 8, .window = 8, .holds_back = true};
  const auto subnets = sample_subnets(outline, Draw::uniform, 150, 3);
  const WholeProgram one = whole_program(outline, network, rules, subnets, {150});
  for (const std::vector<int>& lengths : {std::vector<int>{64}, {1}, {3, 40, 7, 22, 1, 60}}) {
    const WholeProgram other = whole_program(outline, network, rules, subnets, lengths);
    EXPECT_EQ(one.program.ranks, other.program.ranks);
    EXPECT_EQ(one.planned, other.planned);
  }
}

/// What one stage does with the table that all share: its version at each forward.
TEST(CausalPlanner, SubnetsReadWhatAllShareInTheVersionOfTwoWindowsBefore) {
  Outline outline = sample_space(4, 24, 1);
  share_a_table(outline);
  CausalPlanner planner(outline, sample_network(1), {.admission = 8, .window = 8});
  std::map<int, std::int64_t> applied;
  for (const Task& start : planned(planner, sample_subnets(outline, Draw::permutation, 100, 1))) {
    if (what_of(start) == What{TaskKind::update, Owner::window}) {
      EXPECT_EQ(start.owner.number, applied[start.rank]++);
    }
    if (start.kind != TaskKind::forward || (start.rank != 0 && start.rank != 3)) continue;
    EXPECT_GE(applied[start.rank], start.owner.number / 8 - 1);
    EXPECT_LE(applied[start.rank], start.owner.number / 8);
  }
  EXPECT_EQ(applied[0], 13) << "the last, shorter window is applied at the end";
  EXPECT_EQ(applied[3], 13);
}

TEST(CausalPlanner, GroupsThatAreUpdatedTogetherReadTheSameWeights) {
  const Outline outline = sample_space(4, 24, 1);
  CausalPlanner planner(outline, sample_network(1), {.order = SubnetOrder::bulk, .admission = 8});
  std::vector<std::int64_t> updated(4, 0);
  for (const Task& start : planned(planner, sample_subnets(outline, Draw::uniform, 42, 1))) {
    if (start.kind == TaskKind::forward) {
      EXPECT_EQ(updated[start.rank], start.owner.number / 4 * 4);
    }
    if (what_of(start) == What{TaskKind::update}) {
      EXPECT_EQ(start.owner.number, updated[start.rank]++);
    }
  }
  EXPECT_THAT(updated, testing::Each(42));
}

/// A start without its time and the numbers of its rooms, which depend on what was before.
auto after(const Task& start, std::int64_t time) {
  return std::tuple(what_of(start), start.with_forward, start.rank, start.micro_batch, start.peer, start.unit,
                    start.block, start.owner.number, start.start - time, start.end - time);
}

/// When the last backward of a lone subnet's block has ended, and its sum over data has begun.
struct SumOfBlock {
  std::int64_t ready = 0, start = 0, end = 0;
};

TEST(CausalPlanner, SumsOverDataBeginBlockByBlockUnderTheLastBackward) {
  for (const int micro_batches : {1, 4}) {
    Outline outline = sample_space(2, 3, micro_batches);
    outline.data = 2;
    Network network = sample_network(micro_batches);
    network.data = {30'000, 0};  // less than the backward of a block
    CausalPlanner planner(outline, network, {});
    std::map<int, SumOfBlock> sums;
    std::map<int, std::int64_t> last_sum;  // of each rank
    for (const Task& task : planned(planner, sample_subnets(outline, Draw::uniform, 1, 1))) {
      if (task.kind == TaskKind::backward && task.micro_batch + 1 == micro_batches)
        for (int block = task.first; block < task.last; ++block) sums[block].ready = task.end;
      if (task.kind != TaskKind::sum) continue;
      EXPECT_EQ(task.start, std::max(sums[task.block].ready, last_sum[task.rank])) << task.block;
      last_sum[task.rank] = task.end;
      sums[task.block] = {sums[task.block].ready, task.start, task.end};
    }
    ASSERT_EQ(sums.size(), 48u);
    for (const int first : {0, 24})  // of each stage all but the first block's run under the backward
      EXPECT_LE(sums[first + 1].end, sums[first].ready) << micro_batches << ' ' << first;
  }
}

TEST(CausalPlanner, WhatSumsHideUnderTheLastBackwardIsTheirTimeButForTheLast) {
  const auto time = [](const Network& network) {
    Outline outline = sample_space(1, 3, 1);
    outline.data = 2;
    CausalPlanner planner(outline, network, {});
    planned(planner, sample_subnets(outline, Draw::uniform, 1, 1));
    return planner.time();
  };
  Network free = sample_network(1), slow = free;
  slow.data = {30'000, 0};
  EXPECT_EQ(time(slow) - time(free), 30'000 + 30'000);  // the last unit's sum, and that of the losses
}

TEST(CausalPlanner, GoesOnBehindADrainAsOneThatBeginsThere) {
  for (const SubnetOrder order : {SubnetOrder::causal, SubnetOrder::bulk, SubnetOrder::free}) {
    Outline outline = sample_space(3, 24, 2);  // the drain parts a group of three
    share_a_table(outline);
    const SubnetRules rules{.order = order, .admission = 6, .slots = {12, 12, 12}, .window = 16};
    const auto subnets = sample_subnets(outline, Draw::uniform, 80, 1);
    CausalPlanner whole(outline, sample_network(2), rules), late(outline, sample_network(2), rules, 32);
    planned(whole, std::span(subnets).first(32));
    const std::int64_t drain = whole.time();
    const auto on = planned(whole, std::span(subnets).subspan(32)),
               begun = planned(late, std::span(subnets).subspan(32));
    ASSERT_EQ(on.size(), begun.size());
    for (std::size_t i = 0; i < on.size(); ++i) ASSERT_EQ(after(on[i], drain), after(begun[i], 0)) << i;
  }
}

TEST(CausalPlanner, AStageIsBusyOrIdleForAReason) {
  const Outline outline = sample_space(8, 24, 1);
  const auto subnets = sample_subnets(outline, Draw::uniform, 200, 1);
  const auto idle_with = [&](const SubnetRules& rules) {
    CausalPlanner planner(outline, sample_network(1), rules);
    std::vector<std::int64_t> spent(outline.stages, 0), ends(outline.stages, 0);
    for (const Task& start : planned(planner, subnets)) {
      if (!is_work_of_subnet(start)) continue;
      EXPECT_TRUE(start.start > ends[start.rank] || start.waits == WaitReason::input);
      spent[start.rank] += start.end - start.start;
      ends[start.rank] = start.end;
    }
    TimesByReason all{};
    for (int stage = 0; stage < outline.stages; ++stage) {
      for (const std::int64_t time : planner.idle(stage)) spent[stage] += time;
      EXPECT_EQ(spent[stage], ends[stage]) << stage;
      for (int k = 0; k < wait_reasons; ++k) all[k] += planner.idle(stage)[k];
    }
    return all;
  };
  const auto of = [](const TimesByReason& times, WaitReason reason) {
    return times[static_cast<int>(reason)];
  };
  const TimesByReason roomy = idle_with({.admission = 200}), tight = idle_with({.admission = 8}),
                      free = idle_with({.order = SubnetOrder::free, .admission = 200});
  EXPECT_GT(of(roomy, WaitReason::owner), 0);
  EXPECT_EQ(of(roomy, WaitReason::room), 0);
  EXPECT_GT(of(tight, WaitReason::room), 0);
  EXPECT_EQ(of(free, WaitReason::owner) + of(free, WaitReason::room), 0);
}

}  // namespace
}  // namespace mindpipe
