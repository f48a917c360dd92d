#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "program/checker_parts.h"
#include "program/sample_space.h"

// Lanes: subnets of one supernet side by side, and their units that move between ranks.
namespace mindpipe {
namespace {

using testing::IsEmpty;

Outline sample_lanes(int lanes, int stages, int candidates, int micro_batches, double share) {
  Outline outline = sample_space(stages, candidates, micro_batches);
  give_lanes(outline, lanes, share);
  return outline;
}

/// One stage's time for 480 subnets over theirs; the median of five streams.
double speed_up(const Outline& outline, Draw draw, bool holds_back = false) {
  std::vector<double> found;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CausalPlanner planner(outline, sample_network(outline.micro_batches),
                          {.admission = 2 * outline.ranks(), .holds_back = holds_back});
    std::int64_t sum = 0, end = 0;
    for (const PlannedStart& start : planner.next(sample_subnets(outline, draw, 480, seed), true)) {
      if (start.what != PlannedStart::forward && start.what != PlannedStart::backward) continue;
      sum += start.end - start.start;
      end = std::max(end, start.end);
    }
    found.push_back(static_cast<double>(sum) / static_cast<double>(end));
  }
  std::sort(found.begin(), found.end());
  return found[2];
}

TEST(Lanes, GiveTheSpeedUpThatTheRuleCanGive) {
  struct Known {
    int lanes, stages, candidates, micro_batches;
    Draw draw;
    double speed_up, streams_differ_by;
  };
  for (const Known& known : {Known{2, 4, 96, 1, Draw::uniform, 2.64, 0.04},
                             {2, 4, 96, 4, Draw::uniform, 4.67, 0.04},
                             {2, 8, 96, 1, Draw::permutation, 14.63, 0.015},
                             {4, 8, 96, 1, Draw::permutation, 26.29, 0.02},
                             {2, 8, 96, 4, Draw::permutation, 15.74, 0.01},
                             {4, 8, 96, 4, Draw::permutation, 30.64, 0.01},
                             {2, 8, 24, 4, Draw::uniform, 3.70, 0.04},
                             {2, 8, 24, 1, Draw::permutation, 10.95, 0.02},
                             {4, 8, 24, 1, Draw::permutation, 15.36, 0.02},
                             {2, 8, 24, 4, Draw::permutation, 14.53, 0.01},
                             {2, 8, 24, 1, Draw::spaced, 12.58, 0.02},
                             {2, 8, 24, 4, Draw::spaced, 15.83, 0.01},
                             {4, 4, 96, 4, Draw::permutation, 15.65, 0.01},
                             {4, 4, 24, 4, Draw::permutation, 14.02, 0.02}})
    EXPECT_NEAR(speed_up(sample_lanes(known.lanes, known.stages, known.candidates, known.micro_batches, 0.5),
                         known.draw),
                known.speed_up, known.streams_differ_by * known.speed_up)
        << known.lanes << " lanes of " << known.stages << " stages, " << known.candidates << " candidates, "
        << known.micro_batches << " micro-batches, draw " << static_cast<int>(known.draw);
}

/// A unit's users in the order in which a plan lets them begin and update it, with where they run; a move's
/// reader in between.
TEST(Lanes, EachUnitHasOneOwnerAndItsUsersInOrder) {
  Outline outline = sample_lanes(3, 4, 6, 2, 0.5);
  const auto subnets = sample_subnets(outline, Draw::uniform, 120, 1);
  CausalPlanner planner(outline, sample_network(2), {.admission = 24});
  struct Owner {
    int rank = -1;
    std::int64_t users = 0, free = 0;
  };
  std::vector<Owner> owners(outline.units.size());
  std::map<std::pair<std::int64_t, int>, std::int64_t> arrived;
  int moves = 0;
  for (const PlannedStart& start : planner.next(subnets, true)) {
    for (int block = start.first; start.what <= PlannedStart::update && block < start.last; ++block) {
      const int unit = outline.units_used[block][subnets[start.subnet].choice[block]].front();
      Owner& owner = owners[unit];
      if (owner.rank < 0) owner.rank = start.rank;
      const auto older = std::count_if(
          subnets.begin(), subnets.begin() + start.subnet,
          [&](const Subnet& one) { return outline.units_used[block][one.choice[block]].front() == unit; });
      ASSERT_EQ(owner.rank, start.rank) << "unit " << unit << " of subnet " << start.subnet;
      ASSERT_EQ(owner.users, older) << "unit " << unit << " of subnet " << start.subnet;
      ASSERT_LE(owner.free, start.start);
      if (start.what == PlannedStart::update) {
        ++owner.users;
        owner.free = start.end;
      }
    }
    if (start.what != PlannedStart::move || start.goes_home) continue;
    ++moves;
    for (const int unit : start.units) {
      ASSERT_EQ(owners[unit].rank, start.rank);
      ASSERT_LE(owners[unit].free, start.start);
      owners[unit] = {start.peer, owners[unit].users, start.end};
    }
  }
  EXPECT_GT(moves, 500);
}

TEST(Lanes, BeforeACutAllUnitsGoHomeToAllLanes) {
  Outline outline = sample_lanes(3, 4, 6, 1, 0.5);
  const auto subnets = sample_subnets(outline, Draw::uniform, 60, 1);
  CausalPlanner planner(outline, sample_network(1), {.admission = 24});
  const auto home_of = [&](std::span<const Subnet> more) {
    std::vector<std::pair<int, int>> home;  // unit and rank
    for (const PlannedStart& start : planner.next(more, true))
      for (const int unit : start.units)
        if (start.goes_home) home.emplace_back(unit, start.peer);
    return home;
  };
  for (const int first : {0, 30}) {
    const auto more = std::span<const Subnet>(subnets).subspan(first, 30);
    std::set<std::pair<int, int>> used;  // unit and stage
    for (const Subnet& subnet : more)
      for (int block = 0; block < 48; ++block)
        used.emplace(outline.units_used[block][subnet.choice[block]].front(), outline.rank_of_block(block));
    const auto home = home_of(more);
    EXPECT_EQ(home.size(), 2 * used.size()) << "to every lane but the last user's";
    for (const auto& [unit, rank] : home) EXPECT_TRUE(used.contains({unit, rank % 4}));
    EXPECT_EQ(std::set(home.begin(), home.end()).size(), home.size());
  }
}

TEST(Lanes, APlanDoesNotDependOnHowManySubnetsItKnew) {
  Outline outline = sample_lanes(2, 4, 6, 2, 0.5);
  share_a_table(outline);
  const SubnetRules rules{.admission = 16, .window = 8, .holds_back = true};
  const auto subnets = sample_subnets(outline, Draw::uniform, 150, 3);
  const WholeProgram one = whole_program(outline, sample_network(2), rules, subnets, {150});
  for (const std::vector<int>& lengths : {std::vector<int>{64}, {1}, {3, 40, 7, 22, 1, 60}}) {
    const WholeProgram other = whole_program(outline, sample_network(2), rules, subnets, lengths);
    EXPECT_EQ(one.program.ranks, other.program.ranks);
    EXPECT_EQ(one.planned, other.planned);
  }
}

TEST(Lanes, AllRanksListsTogetherAreSoundWhateverTheGridAndTheRooms) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    const int lanes = 2 + below(3), stages = 1 + below(4), micro_batches = 1 + below(3);
    Outline outline = sample_lanes(lanes, stages, 1 + below(6), micro_batches, 0.1 * below(20));
    outline.data = 1 + below(2);
    for (UnitCost& unit : outline.units) unit.moved = 1 + below(8 << 20);
    if (below(2) == 0) share_a_table(outline);
    SubnetRules rules{.admission = lanes * stages + below(2 * lanes * stages), .holds_back = below(2) == 0};
    rules.window = 1 + below(20);
    if (below(3) == 0) rules.draws = seed;
    for (int stage = 0; stage < stages; ++stage) {
      rules.slots.push_back(micro_batches + below(2 * micro_batches));
      rules.slabs.push_back(1 + below(3));
    }
    Network network = sample_network(micro_batches);
    network.data.latency = below(100'000);
    const auto subnets = sample_subnets(outline, Draw::uniform, 20 + below(60), seed);
    const WholeProgram whole =
        whole_program(outline, network, rules, subnets, {1 + below(40), 1 + below(40)});
    Findings findings(whole.program);
    check_communication(whole.program, findings);
    EXPECT_THAT(findings.take(), IsEmpty()) << seed;
    EXPECT_TRUE(simulate(whole.program, whole.durations, network).finished) << seed;
  }
}

// What goes home before a cut need not wait for the others, as the planner lets it.
TEST(Lanes, TheSimulatorRunsTheListsInThePlannersTime) {
  for (const int micro_batches : {1, 4}) {
    const Outline outline = sample_lanes(2, 4, 24, micro_batches, 0.5);
    const auto subnets = sample_subnets(outline, Draw::permutation, 100, 1);
    const Network network = sample_network(micro_batches);
    const WholeProgram whole = whole_program(outline, network, {.admission = 100}, subnets, {64});
    const Timeline timeline = simulate(whole.program, whole.durations, network);
    CausalPlanner planner(outline, network, {.admission = 100});
    std::int64_t end = 0, simulated = 0;
    for (const PlannedStart& start : planner.next(subnets, true))
      if (start.what == PlannedStart::update) end = std::max(end, start.end);
    for (const Place& place : whole.program.places())
      if (whole.program.at(place).kind == ActionKind::update)
        simulated = std::max(simulated, timeline.spans[place.rank][place.index].end);
    EXPECT_EQ(simulated, end);
    EXPECT_LE(timeline.step, whole.planned);
  }
}

}  // namespace
}  // namespace mindpipe
