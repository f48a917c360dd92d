#include "program/moving_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/check.h"
#include "program/check/checker.h"
#include "program/clock/transfer.h"
#include "program/drawn_steps.h"
#include "program/played_step.h"
#include "program/sample_outline.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// The cut that moves each boundary by as many blocks as is said, in turn.
std::vector<int> moved_cut(const Outline& outline, const std::vector<int>& by) {
  std::vector<int> next = outline.first_block;
  for (int stage = 1; stage < outline.stages; ++stage)
    next[stage] += by[static_cast<std::size_t>(stage - 1) % by.size()];
  return next;
}

/// What an executor sees of a pass, but for when it runs.
Action as_it_runs(Action pass) {
  pass.after.clear();
  return pass;
}
std::vector<Action> passes_of(const std::vector<Action>& list) {
  std::vector<Action> passes;
  for (const Action& action : list)
    if (is_pass(action)) passes.push_back(as_it_runs(action));
  return passes;
}

Outline of_three_blocks_each(int stages, int micro_batches) {
  Outline outline = equal_stages(stages, micro_batches, 1, {}, 3);
  for (UnitCost& unit : outline.units) unit.moved = 96;
  return outline;
}

TEST(AMovingStep, IsSoundWithThePassesOfTheStepBefore) {
  for (const std::string& schedule : all_schedules()) {
    if (has_chunks(schedule) || is_in_v(schedule)) continue;
    for (const int stages : {2, 3, 4})
      for (const std::vector<int>& by :
           std::vector<std::vector<int>>{{1}, {-1}, {1, -1}, {-1, 1}, {0, 1}, {-1, 0}}) {
        const Outline plain = of_three_blocks_each(stages, 6);
        std::vector<Outline> outlines{plain, on_data_ranks(plain), in_slabs(plain)};
        if (stages > 2) {
          outlines.push_back(plain);
          tie(outlines.back(), {0, plain.all_blocks() - 1}, 40);
        }
        for (const Outline& outline : outlines) {
          const PlannedStep still = make_program(outline, schedule);
          const PlannedStep moving = make_program(moving_step(outline, moved_cut(outline, by), 1), schedule);
          for (int rank = 0; rank < stages; ++rank)
            EXPECT_EQ(passes_of(moving.program.ranks[rank]), passes_of(still.program.ranks[rank]))
                << schedule << ", rank " << rank;
          EXPECT_TRUE(moving.expected.finished);
        }
      }
  }
}

TEST(AMovingStep, HandsOverTheUnitsOfItsBlocksAlone) {
  const Outline outline = of_three_blocks_each(3, 4), moving = moving_step(outline, {0, 4, 5, 9}, 1);
  EXPECT_EQ(moved_blocks(moving), "block 3 from stage 1 to stage 0, block 5 from stage 1 to stage 2");
  EXPECT_EQ(units_leaving(moving, 1, 0), (std::vector<int>{3}));
  EXPECT_EQ(units_leaving(moving, 1, 2), (std::vector<int>{5}));
  EXPECT_EQ(units_updated_by(moving, 0), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(units_updated_by(moving, 1), (std::vector<int>{4}));
  EXPECT_EQ(units_updated_by(moving, 2), (std::vector<int>{6, 7, 8, 5}));
  EXPECT_EQ(after_move(moving).first_block, (std::vector<int>{0, 4, 5, 9}));
  EXPECT_EQ(after_move(moving).units_of_rank(0), (std::vector<int>{0, 1, 2, 3}));
}

TEST(AMovingStep, NeedsRoomForWhatComes) {
  const Outline outline = of_three_blocks_each(2, 4);
  const PlannedStep still = make_program(outline, "1f1b"),
                    moving = make_program(moving_step(outline, {0, 4, 6}, 1), "1f1b");
  const auto more = [&](int rank, MemoryClass kind) {
    return moving.placement.ranks[rank].bytes[static_cast<int>(kind)] -
           still.placement.ranks[rank].bytes[static_cast<int>(kind)];
  };
  const UnitCost& unit = outline.units[3];
  EXPECT_EQ(more(0, MemoryClass::values), unit.values);
  EXPECT_EQ(more(0, MemoryClass::optimizer), unit.state);
  EXPECT_EQ(more(0, MemoryClass::boundary), unit.gradients);
  EXPECT_EQ(moving.placement.ranks[1].total(), still.placement.ranks[1].total());
}

/// A cut that one step can come to, each boundary moved by a block or not, by lot.
std::optional<std::vector<int>> drawn_cut(const Outline& outline, std::mt19937& random) {
  std::vector<int> next = outline.first_block;
  for (int stage = 1; stage < outline.stages; ++stage)
    next[static_cast<std::size_t>(stage)] += static_cast<int>(random() % 3) - 1;
  if (!std::is_sorted(next.begin(), next.end(), std::less_equal<>()) || next == outline.first_block)
    return {};
  try {
    moving_step(outline, next, 1);
  } catch (const Error&) {  // a table that is shared
    return {};
  }
  return next;
}

TEST(StepsThatMove, LeaveTheBitsOfThoseThatNeverDo) {
  int moves = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    DrawnStep drawn(seed, 5);
    drawn.outline.swapped.clear();  // moves refuse swaps
    if (drawn.outline.stages == 1 || drawn.outline.chunks > 1) continue;
    drawn.outline.state_on_host = false;
    for (UnitCost& unit : drawn.outline.units) unit.moved = 3 * unit.gradients;
    Outline here = drawn.outline;
    const PlannedStep still = make_program(here, drawn.schedule);
    PlayedStep moved(still.program, here), unmoved(still.program, here);
    for (int step = 0; step < 6; ++step) {
      ASSERT_TRUE(unmoved.run(1));
      const auto next = drawn_cut(here, random);
      const Outline outline = next ? moving_step(here, *next, 1) : here;
      const Program lists = make_program(outline, drawn.schedule).program;
      moved.go_on(lists, outline);
      ASSERT_TRUE(moved.run(1)) << seed;
      here = after_move(outline);
      moves += next ? 1 : 0;
    }
    moved.go_on({}, here);
    EXPECT_EQ(moved.at_home(), unmoved.at_home()) << seed << ' ' << drawn.schedule;
  }
  EXPECT_GT(moves, 50);
}

/// How many times as long a step of 8 stages of 8 blocks takes that moves all boundaries, where a block's
/// state travels in so many forwards of a stage, over links like the h200's.
double longer(double forwards, const std::vector<int>& by) {
  constexpr std::int64_t forward = 20'000'000;
  Outline outline = equal_stages(8, 16, 1, {.forward = forward, .backward = 2 * forward}, 8);
  Network network;
  network.message.picoseconds_per_byte = 20;
  const std::int64_t of_forward = std::llround(1000 * forward / network.message.picoseconds_per_byte);
  for (BoundaryBytes& cut : outline.cuts) cut.activation = cut.gradient = of_forward / 50;
  for (UnitCost& unit : outline.units) {
    unit.moved = std::llround(forwards * static_cast<double>(of_forward));
    unit.gradients = unit.moved / 3;
  }
  const Outline moving = moving_step(outline, moved_cut(outline, by), 1);
  outline.part_bytes = part_bytes_on(network, moving);
  Outline in_parts = moving;
  in_parts.part_bytes = outline.part_bytes;
  const auto step = [&](const Outline& of) {
    return static_cast<double>(
        plan_step(of, order_of_step(of, ScheduleKind::one_forward_one_backward, network), network)
            .expected.step);
  };
  return step(in_parts) / step(outline);
}

TEST(AMovingStep, LetsNothingStandStill) {
  const std::map<std::string, std::vector<int>> ways{
      {"Forwards", {1}}, {"Backwards", {-1}}, {"InTurn", {1, -1}}};
  for (const auto& [way, by] : ways) {
    const double four = longer(4, by), eight = longer(8, by), sixteen = longer(16, by);
    RecordProperty(way, fmt::format("{:.4f}, {:.4f}, {:.4f}", four, eight, sixteen));
    EXPECT_LE(four, 1.005);
    EXPECT_LE(eight, 1.025);
    EXPECT_GE(eight, four);
    EXPECT_GT(sixteen, 1.03) << "what sticks out of the step is on paper";
  }
}

void expect_refused(const Outline& outline, const std::vector<int>& next, const std::string& why,
                    int room = 1) {
  try {
    moving_step(outline, next, room);
    ADD_FAILURE() << "nothing was refused: " << why;
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

TEST(ACutThatOneStepCannotComeTo, IsRefusedWithItsReason) {
  const Outline outline = of_three_blocks_each(3, 4);
  expect_refused(outline, {0, 5, 6, 9}, "the boundary before block 3 would move to block 5, by 2 blocks");
  expect_refused(outline, {0, 7, 8, 9}, "block 6 would move from stage 2 to stage 0, across a whole stage",
                 4);
  Outline tied = outline;
  tie(tied, {2, 8}, 40);
  expect_refused(tied, {0, 2, 6, 9}, "but it shares a table with block 8");
  expect_refused(equal_stages(1, 4, 1, {}, 3), {0, 3}, "the pipeline has one stage");
  expect_refused(equal_stages(2, 4, 2, {}, 3), {0, 4, 6, 9, 12}, "each stage has 2 chunks");
  Outline lanes = outline;
  lanes.lanes = 2;
  expect_refused(lanes, {0, 4, 6, 9}, "a supernet has no steps");
  Outline on_host = outline;
  on_host.state_on_host = true;
  expect_refused(on_host, {0, 4, 6, 9}, "masters and moments are kept on the host");
}

}  // namespace
}  // namespace mindpipe
