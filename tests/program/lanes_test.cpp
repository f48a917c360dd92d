#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <utility>

#include "program/causal/own_cuts.h"
#include "program/check/check_communication.h"
#include "program/lists/stretch_channels.h"
#include "program/sample_space.h"

// Lanes: subnets of one supernet side by side, and their units that move between ranks.
namespace mindpipe {
namespace {

using testing::IsEmpty;

/// The way that a message takes; of what stays on its rank none.
std::vector<StretchChannel> ways_of(const Task& start) {
  if (start.kind == TaskKind::message)
    return {{start.rank, start.peer, start.with_forward ? Payload::activation : Payload::gradient}};
  if (start.kind == TaskKind::exchange) return {{start.rank, start.peer, Payload::unit_gradient}};
  if (start.kind == TaskKind::move) return {{start.rank, start.peer, Payload::unit_state}};
  return {};
}

TEST(Lanes, TakeNoWayThatTheirOutlineDoesNotName) {
  for (const int lanes : {1, 2, 4})
    for (const int stages : {1, 2, 5})
      for (const bool own_cuts : {false, true}) {
        Outline outline = sample_space(stages, 24, 1);
        price_h200(outline);
        give_lanes(outline, lanes, 0.5);
        share_a_table(outline);
        outline.own_cuts = own_cuts;
        const std::vector<StretchChannel> named = channels_of_stretches(outline);
        std::set<StretchChannel> taken;
        CausalPlanner planner(outline, sample_network(1), {.admission = 2 * outline.ranks(), .window = 8});
        for (const Task& start : planned(planner, sample_subnets(outline, Draw::permutation, 480, 3)))
          for (const StretchChannel& way : ways_of(start)) taken.insert(way);
        const std::string name = fmt::format("{} lanes of {} stages, own cuts {}", lanes, stages, own_cuts);
        EXPECT_TRUE(std::includes(named.begin(), named.end(), taken.begin(), taken.end())) << name;
        if (!own_cuts) {
          EXPECT_EQ(taken.size(), named.size()) << name;
        }
      }
}

/// NCCL's communicators take memory of the device: each channel of the pipeline has one, all that travels in
/// bulk has one, and sums along the axes of the grid have five.
TEST(Lanes, NoRankTakesPartInMoreThan32Transports) {
  constexpr int of_sums = 5;
  for (const int lanes : {4, 8, 16})
    for (const int stages : {2, 8, 16})
      for (const bool own_cuts : {false, true}) {
        Outline outline = sample_space(stages, 24, 1);
        price_h200(outline);
        give_lanes(outline, lanes, 0.5);
        share_a_table(outline);
        outline.own_cuts = own_cuts;
        std::vector<int> own(static_cast<std::size_t>(outline.ranks()), of_sums + 1), ways = own;
        for (const StretchChannel& way : channels_of_stretches(outline))
          for (const int rank : {way.from, way.to}) {
            ++ways[rank];
            if (!travels_in_bulk(way.payload)) ++own[rank];
          }
        const int most = *std::max_element(own.begin(), own.end());
        fmt::print(
            "{} lanes of {} stages, own cuts {}: {} transports of a rank, where {} ways have one each\n",
            lanes, stages, own_cuts, most, *std::max_element(ways.begin(), ways.end()));
        EXPECT_LE(most, 32);
      }
}

TEST(Lanes, ACutOfASubnetsOwnKeepsBlocksAtHomeOrBesideIt) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Outline outline = sample_space(2 + static_cast<int>(seed) % 7, 24, 1);
    price_h200(outline);
    share_a_table(outline);
    outline.own_cuts = true;
    OwnCuts cuts(outline);
    const auto longest = [&](const Subnet& subnet, const std::vector<int>& first) {
      std::int64_t most = 0;
      for (int stage = 0; stage < outline.stages; ++stage) {
        std::int64_t sum = 0;
        for (int block = first[stage]; block < first[stage + 1]; ++block)
          sum += outline.cost(block, subnet.choice[block]).forward;
        most = std::max(most, sum);
      }
      return most;
    };
    for (const Subnet& subnet : sample_subnets(outline, Draw::uniform, 20, seed)) {
      const std::vector<int>& first = cuts.of(subnet.choice);
      ASSERT_EQ(first.size(), outline.first_block.size());
      EXPECT_EQ(first.front(), 0);
      EXPECT_EQ(first.back(), 48);
      for (int stage = 0; stage < outline.stages; ++stage) {
        EXPECT_LT(first[stage], first[stage + 1]);
        const auto [least, most] = cuts.reach(stage);
        for (int block = first[stage]; block < first[stage + 1]; ++block) {
          EXPECT_LE(std::abs(outline.rank_of_block(block) - stage), 1);
          EXPECT_TRUE(least <= block && block < most);
        }
      }
      EXPECT_LE(longest(subnet, first), longest(subnet, outline.first_block));
    }
  }
}

/// Holds a plan against its stream: each unit's users begin and update it in order, where it is, and its
/// moves stand in between, of each rank one after the other. Returns how many moves there were.
int moves_with_one_owner(const Outline& outline, Draw draw, int count, int admission) {
  const auto subnets = sample_subnets(outline, draw, count, 1);
  CausalPlanner planner(outline, sample_network(outline.micro_batches), {.admission = admission});
  struct Holder {
    int rank = -1;
    std::int64_t free = 0;
    std::vector<std::int64_t> to_update = {};  ///< users that have yet to update it, from the last on
  };
  std::vector<Holder> owners(outline.units.size());
  for (int id = count; id-- > 0;)
    for (int block = 0; block < outline.all_blocks(); ++block)
      owners[outline.units_used[block][subnets[id].choice[block]].front()].to_update.push_back(id);
  std::vector<std::int64_t> link_is_free(outline.ranks());
  int moves = 0;
  for (const Task& start : planned(planner, subnets)) {
    if (start.kind == TaskKind::move) {
      EXPECT_LE(link_is_free[start.rank], start.start) << "rank " << start.rank;
      link_is_free[start.rank] = start.end;
    }
    for (int block = start.first; is_work_of_subnet(start) && block < start.last; ++block) {
      const int unit = outline.units_used[block][subnets[start.owner.number].choice[block]].front();
      Holder& owner = owners[unit];
      if (owner.rank < 0) owner.rank = start.rank;
      EXPECT_EQ(owner.rank, start.rank) << "unit " << unit << " of subnet " << start.owner.number;
      EXPECT_EQ(owner.to_update.back(), start.owner.number) << "unit " << unit;
      EXPECT_LE(owner.free, start.start);
      if (testing::Test::HasFailure()) return moves;
      if (what_of(start) == What{TaskKind::update}) {
        owner.to_update.pop_back();
        owner.free = start.end;
      }
    }
    if (start.kind != TaskKind::move || start.owner.of == Owner::drain) continue;
    ++moves;
    EXPECT_FALSE(start.units.empty()) << "a move of nothing, for subnet " << start.owner.number;
    for (const int unit : start.units) {
      EXPECT_EQ(owners[unit].rank, start.rank);
      EXPECT_LE(owners[unit].free, start.start);
      owners[unit].rank = start.peer;
      owners[unit].free = start.end;
    }
  }
  for (const Holder& owner : owners) EXPECT_THAT(owner.to_update, IsEmpty());
  return moves;
}

TEST(Lanes, EachUnitHasOneOwnerAndItsUsersInOrder) {
  EXPECT_GT(moves_with_one_owner(sample_lanes(3, 4, 6, 2, 0.5), Draw::uniform, 120, 24), 500);
}

// Many then wait in one channel, and some of them are for the same reader.
TEST(Lanes, MovesThatWaitBehindOneAnotherLoseNoUnit) {
  for (const auto& [lanes, stages] : {std::pair{2, 4}, {3, 4}, {4, 2}, {4, 8}})
    for (const double share : {0.1, 0.5, 2.0})
      for (const int candidates : {6, 24}) {
        const Outline outline = sample_lanes(lanes, stages, candidates, 1, share);
        moves_with_one_owner(outline, Draw::permutation, 240, 2 * outline.ranks());
        ASSERT_FALSE(HasFailure()) << lanes << " lanes of " << stages << " stages, " << candidates
                                   << " candidates, moves of " << share;
      }
}

TEST(Lanes, BeforeADrainAllUnitsGoHomeToAllLanes) {
  Outline outline = sample_lanes(3, 4, 6, 1, 0.5);
  const auto subnets = sample_subnets(outline, Draw::uniform, 60, 1);
  CausalPlanner planner(outline, sample_network(1), {.admission = 24});
  const auto home_of = [&](std::span<const Subnet> more) {
    std::vector<std::pair<int, int>> home;  // unit and rank
    for (const Task& start : planned(planner, more))
      for (const int unit : start.units)
        if (start.owner.of == Owner::drain) home.emplace_back(unit, start.peer);
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
  price_h200(outline);
  share_a_table(outline);
  outline.own_cuts = true;
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
    const int lanes = 1 + below(4), stages = 1 + below(4), micro_batches = 1 + below(3);
    Outline outline = sample_lanes(lanes, stages, 1 + below(6), micro_batches, 0.1 * below(20));
    outline.data = 1 + below(2);
    outline.own_cuts = below(2) == 0;
    if (below(2) == 0) price_h200(outline);
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
    Findings findings;
    check_partners(whole.program, findings);
    EXPECT_THAT(findings.take(), IsEmpty()) << seed;
    EXPECT_THAT(errors_of_clock(outline, network, rules, subnets, 17), IsEmpty()) << seed;
    EXPECT_TRUE(simulate(whole.program, whole.durations, network).finished) << seed;
  }
}

// What goes home before a drain need not wait for the others, as the planner lets it.
TEST(Lanes, TheSimulatorRunsTheListsInThePlannersTime) {
  for (const int micro_batches : {1, 4}) {
    const Outline outline = sample_lanes(2, 4, 24, micro_batches, 0.5);
    const auto subnets = sample_subnets(outline, Draw::permutation, 100, 1);
    const Network network = sample_network(micro_batches);
    const WholeProgram whole = whole_program(outline, network, {.admission = 100}, subnets, {64});
    const Timeline timeline = simulate(whole.program, whole.durations, network);
    CausalPlanner planner(outline, network, {.admission = 100});
    std::int64_t end = 0, simulated = 0;
    for (const Task& start : planned(planner, subnets))
      if (what_of(start) == What{TaskKind::update}) end = std::max(end, start.end);
    for (const Place& place : whole.program.places())
      if (whole.program.at(place).kind == ActionKind::update)
        simulated = std::max(simulated, timeline.spans[place.rank][place.index].end);
    EXPECT_EQ(simulated, end);
    EXPECT_LE(timeline.step, whole.planned);
  }
}

#ifdef __SANITIZE_ADDRESS__
constexpr double patience_of_lanes = 10;
#else
constexpr double patience_of_lanes = 1;
#endif

// On one core: 64 subnets over 16 ranks, with moves and cuts of their own.
TEST(Lanes, ArePlannedWrittenAndCheckedInMilliseconds) {
  for (const auto& [micro_batches, most_ms] : {std::pair{1, 10.0}, {4, 20.0}}) {
    Outline outline = sample_space(8, 96, micro_batches);
    price_h200(outline);
    give_lanes(outline, 2, 0.5);
    outline.own_cuts = true;
    const auto subnets = sample_subnets(outline, Draw::permutation, 64 * 6, 1);
    double best = 1e9;
    for (int turn = 0; turn < 5; ++turn) {
      Stretches stretches(outline, sample_network(micro_batches), {.admission = 32}, {7});
      for (int i = 0; i < 6; ++i) {
        const auto start = std::chrono::steady_clock::now();
        stretches.next(std::span(subnets).subspan(64 * i, 64), i == 5);
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        if (i > 0 && i < 5) best = std::min(best, took.count());
      }
    }
    RecordProperty("milliseconds_" + std::to_string(micro_batches), std::to_string(best));
    fmt::print("{} micro-batches: {:.2f} ms\n", micro_batches, best);
    EXPECT_LT(best, patience_of_lanes * most_ms) << micro_batches << " micro-batches";
  }
}

}  // namespace
}  // namespace mindpipe
