// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/checked_lists.h"
#include "program/drawn_steps.h"
#include "program/moving_step.h"
#include "program/played_step.h"
#include "program/played_stretch.h"
#include "program/spoil_by_lot.h"

// Sound programs of every kind are taken, and a fault that leaves other bits is found before anything runs.
namespace mindpipe {
namespace {

using testing::IsEmpty;

TEST(SoundSteps, AreNeverRefused) {
  for (unsigned seed = 1; seed <= 1800; ++seed) {
    const DrawnStep drawn(seed);
    EXPECT_NO_THROW(make_program(drawn.outline, drawn.schedule)) << seed << ' ' << drawn.schedule;
  }
}

TEST(SoundSubnets, AreNeverRefused) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    Outline outline = sample_lanes(1 + below(3), 1 + below(4), 1 + below(6), 1 + below(3), 0.1 * below(10));
    outline.own_cuts = below(2) == 0;
    outline.data = 1 << below(4);
    for (UnitCost& unit : outline.units) unit.gradients = 1 + below(6'000'000);
    if (outline.lanes == 1 && below(2) == 0) share_a_table(outline);
    const auto subnets = sample_subnets(outline, static_cast<Draw>(below(3)), 8 + below(24), seed);
    EXPECT_NO_THROW(whole_program(outline, sample_network(outline.micro_batches),
                                  {.admission = 1 + below(12), .window = 1 + below(8)}, subnets, {8}))
        << seed;
  }
}

/// How many lists with a fault were found to have one, and how many leave other bits.
struct Tally {
  int found = 0, other_bits = 0;
};
using Spoil = std::string (*)(Lists&, std::mt19937&);
using BitsOf = std::function<std::vector<float>(const Lists&)>;

/// Whoever leaves other bits than the sound lists has to be found.
void try_fault(Lists lists, Spoil spoil, unsigned seed, const std::vector<float>& sound,
               const BitsOf& bits_of, Tally& tally) {
  std::mt19937 random(seed);
  ASSERT_FALSE(sound.empty()) << seed;
  const std::string fault = spoil(lists, random);
  const bool is_found = !lists.errors().empty(), differs = bits_of(lists) != sound;
  EXPECT_TRUE(is_found || !differs) << seed << ": " << fault;
  tally.found += is_found ? 1 : 0;
  tally.other_bits += differs ? 1 : 0;
}
void expect_found(const char* what, const Tally& tally, int least) {
  std::cout << what << ": " << tally.other_bits << " with other bits, " << tally.found << " found\n";
  EXPECT_GT(tally.other_bits, least) << what;
  EXPECT_GE(tally.found, tally.other_bits) << what;
}

TEST(DrawnFaults, ThatLeaveOtherBitsAreFound) {
  Tally of_lists, of_fields;
  const auto bits_of = [](const Lists& lists) { return PlayedStep(lists.program, lists.outline).after(2); };
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const DrawnStep drawn(seed, 4);
    const Lists lists = lists_of_step(drawn.outline, drawn.schedule.c_str());
    const std::vector<float> sound = bits_of(lists);
    try_fault(lists, spoil_by_lot, seed, sound, bits_of, of_lists);
    for (unsigned turn = 0; turn < 3; ++turn)
      try_fault(lists, spoil_field_by_lot, 3 * seed + turn, sound, bits_of, of_fields);
  }
  expect_found("actions", of_lists, 60);
  expect_found("fields", of_fields, 100);
}

/// Subnets in flight on 2, 4 or 8 ranks: stages, lanes and replicas, moves in parts, cuts of their own.
Lists drawn_subnets(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  constexpr struct {
    int lanes, stages, data;
  } grids[] = {{1, 2, 1}, {2, 1, 1}, {1, 1, 2}, {1, 4, 1}, {2, 2, 1},
               {1, 2, 2}, {2, 2, 2}, {1, 4, 2}, {2, 4, 1}};
  const auto [lanes, stages, data] = grids[below(9)];
  const int shards = 1 + below(2);
  Outline outline = sample_lanes(lanes, stages, 2 + below(4), shards * (1 + below(2)), 0.1 * below(10));
  outline.data = data;
  outline.shards = shards;
  outline.own_cuts = stages > 1 && below(2) == 0;
  if (below(2) == 0)
    for (UnitCost& unit : outline.units) unit.moved = 3 << 20;
  if (below(2) == 0)
    for (UnitCost& unit : outline.units) unit.gradients = 6 << 20;
  return lists_of_subnets(outline, {.admission = 2 + below(12)}, 6 + below(8), 0);
}

TEST(DrawnFaults, OfSubnetsThatLeaveOtherBitsAreFound) {
  Tally of_lists, of_fields;
  const auto bits_of = [](const Lists& lists) {
    return PlayedStretch(lists.program, lists.outline, lists.subnets).bits_at_end();
  };
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const Lists lists = drawn_subnets(seed);
    const std::vector<float> sound = bits_of(lists);
    try_fault(lists, spoil_by_lot, seed, sound, bits_of, of_lists);
    try_fault(lists, spoil_field_by_lot, seed, sound, bits_of, of_fields);
  }
  expect_found("actions", of_lists, 120);
  expect_found("fields", of_fields, 60);
}

// Arenas of tapes: a pass, or what arrives for it, that names any other one.
TEST(DrawnFaults, OfEveryTapeOfSubnetsAreFound) {
  Outline outline = sample_lanes(2, 3, 3, 2, 0.3);
  Lists lists = lists_of_subnets(outline, {.admission = 8}, 10, 0);
  int tried = 0;
  for (lists.rank = 0; lists.rank < outline.ranks(); ++lists.rank) {
    int tapes = 0;
    for (const Action& action : lists.list()) tapes = std::max(tapes, action.tape + 1);
    for (int place = 0; place < std::ssize(lists.list()); ++place) {
      Action& action = lists.list()[place];
      const int own = action.tape;
      if (own < 0) continue;
      for (int other = 0; other <= tapes; ++other) {
        action.tape = other;
        if (other == own) continue;
        EXPECT_FALSE(lists.errors().empty())
            << "rank " << lists.rank << ", " << line_of(action, place) << " in place of " << own;
        ++tried;
      }
      action.tape = own;
    }
  }
  EXPECT_GT(tried, 300);
}

TEST(DrawnFaults, OfMovingStepsThatLeaveOtherBitsAreFound) {
  Tally of_lists, of_fields;
  const auto bits_of = [](const Lists& lists) {
    PlayedStep played(lists.program, lists.outline);
    if (!played.run(1)) return std::vector<float>{};
    played.go_on({}, after_move(lists.outline));
    return played.at_home();
  };
  for (unsigned seed = 1; seed <= 800; ++seed) {
    DrawnStep drawn(seed, 4);
    drawn.outline.swapped.clear();  // moves refuse swaps
    drawn.outline.state_on_host = false;
    if (drawn.outline.stages == 1 || drawn.outline.chunks > 1 ||
        drawn.outline.all_blocks() == drawn.outline.stages)
      continue;
    for (UnitCost& unit : drawn.outline.units) unit.moved = 3 * unit.gradients;
    std::vector<int> next = drawn.outline.first_block;
    ++next[1];
    Lists lists;
    try {
      lists = lists_of_step(moving_step(drawn.outline, next, 1), drawn.schedule.c_str());
    } catch (const Error&) {  // a table that is shared
      continue;
    }
    const std::vector<float> sound = bits_of(lists);
    try_fault(lists, spoil_by_lot, seed, sound, bits_of, of_lists);
    try_fault(lists, spoil_field_by_lot, seed, sound, bits_of, of_fields);
  }
  expect_found("actions", of_lists, 30);
  expect_found("fields", of_fields, 20);
}

}  // namespace
}  // namespace mindpipe
