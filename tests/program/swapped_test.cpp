#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "program/schedules/segment_turns.h"
#include "program/wrong_list.h"

// Blocks whose part of a tape waits on the host: who takes which slot, what that costs, what can be wrong.
namespace mindpipe {
namespace {

constexpr int stages = 8, blocks_of_stage = 6, micro_batches = 16;

/// The step of stages of six equal blocks, all of them swapped or none: copies of a stage take `rho` of the
/// time of one of its forwards and backwards.
double step_of(double rho, bool swaps) {
  const StageTimes times{.forward = 6000, .backward = 12000};
  Outline outline = equal_stages(stages, micro_batches, 1, times, blocks_of_stage);
  std::vector<int> all(outline.blocks.size());
  std::iota(all.begin(), all.end(), 0);
  for (auto& candidates : outline.blocks) candidates[0].saved = 1000;
  for (BoundaryBytes& cut : outline.cuts) cut = {1, 0, 1, 0};
  if (swaps) outline = with_swapped(std::move(outline), all);
  Network network;
  network.copies.picoseconds_per_byte =
      rho * static_cast<double>(times.forward + times.backward) / blocks_of_stage;
  return static_cast<double>(make_program(outline, "1f1b", network).expected.step);
}

TEST(Swaps, HideBehindPassesWhileCopiesAreShorter) {
  const double kept = step_of(0, false);
  EXPECT_NEAR(step_of(0.5, true) / kept, 1.00, 0.01);
  EXPECT_NEAR(step_of(0.9, true) / kept, 1.00, 0.01);
  EXPECT_NEAR(step_of(1.0, true) / kept, 1.06, 0.01);
  EXPECT_NEAR(step_of(1.2, true) / kept, 1.21, 0.01);
}

int copies_in(const std::vector<Action>& list, ActionKind kind) {
  return static_cast<int>(std::count_if(list.begin(), list.end(), of_kind(kind)));
}

TEST(Swaps, ALastStageHasNone) {
  const Program program = make_program(with_swapped(equal_stages(4, 8), {0, 1, 2, 3}), "1f1b").program;
  EXPECT_EQ(copies_in(program.ranks[3], ActionKind::stash), 0);
  for (int stage = 0; stage < 3; ++stage) {
    EXPECT_GT(copies_in(program.ranks[stage], ActionKind::stash), 0) << stage;
    EXPECT_EQ(copies_in(program.ranks[stage], ActionKind::stash),
              copies_in(program.ranks[stage], ActionKind::unstash));
  }
}

TEST(Swaps, TakeTwoSlotsAndAPlaceForEachTapeInFlight) {
  const Outline outline = with_swapped(equal_stages(4, 8, 1, {}, 3), {1, 4, 10});
  const PlannedStep step = make_program(outline, "1f1b");
  const RankMemory &first = step.placement.ranks[0], &last = step.placement.ranks[3];
  // A block keeps 100 bytes, its input among them in place of its output.
  EXPECT_EQ(first.bytes[static_cast<int>(MemoryClass::activations)], 4 * 200 + 2 * 100);
  EXPECT_EQ(first.on_host, 4 * 100);
  EXPECT_EQ(last.bytes[static_cast<int>(MemoryClass::activations)], 200 + 100);
  EXPECT_EQ(last.on_host, 0);
}

TEST(SegmentTurns, TakeTheSlotThatIsFreeForLongest) {
  const Outline outline = with_swapped(equal_stages(4, 8), {0});
  const SegmentTurns turns(outline, order_of_step(outline, ScheduleKind::one_forward_one_backward, {})[0]);
  ASSERT_EQ(turns.lives().size(), 8U);
  for (int micro_batch = 0; micro_batch < 8; ++micro_batch) {
    const SegmentLife& life = turns.lives()[micro_batch];
    EXPECT_TRUE(life.is_stashed);
    EXPECT_LT(std::max(life.slot, life.slot_back), 2);
    if (micro_batch < 4) {
      EXPECT_EQ(life.forward_waits, micro_batch < 2 ? -1 : micro_batch - 2);
    } else {
      EXPECT_NE(life.slot, turns.lives()[micro_batch - 4].slot_back);
    }
  }
}

TEST(SegmentTurns, GrowWhereWeightGradientsArePutOff) {
  const Outline outline = with_swapped(equal_stages(4, 12), {0});
  const auto slots = [&](const Order& order) {
    const SegmentTurns turns(outline, order[0]);
    int most = 0;
    for (const SegmentLife& life : turns.lives()) most = std::max({most, life.slot, life.slot_back});
    return most + 1;
  };
  EXPECT_EQ(slots(order_of_step(outline, ScheduleKind::one_forward_one_backward, {})), 2);
  const PassClock clock(outline, PriceList(outline, {}));
  EXPECT_GT(slots(clock.run(zero_bubble_order(request_of(outline)), {}, PassClock::Tells::order).order), 2);
}

// Four stages of three blocks, of which the first and the third of the first stage are swapped.
Lists swapped() { return lists_of_step(with_swapped(equal_stages(4, 8, 1, {}, 3), {0, 2}), "1f1b"); }
Lists halves() { return lists_of_halves(with_swapped(equal_stages(4, 8, 1, {}, 3), {0, 9})); }
SuchAction piece(ActionKind kind, int block) {
  return [=](const Action& action) { return action.kind == kind && action.first == block; };
}
const SuchAction stash = piece(ActionKind::stash, 2), unstash = piece(ActionKind::unstash, 2),
                 forward_piece = piece(ActionKind::forward, 2),
                 backward_piece = piece(ActionKind::backward, 2);

const WrongList of_segments[] = {
    {"AStashThatIsLeftOut", swapped, [](Lists& lists) { lists.leave_out(lists.find(stash)); },
     "where the segment of micro-batch 0 still lies"},
    {"AnUnstashThatIsLeftOut", swapped, [](Lists& lists) { lists.leave_out(lists.find(unstash)); },
     "where it is not"},
    {"AStashThatDoesNotWaitForItsForward", swapped, without_waits(stash, 3),
     "does not wait for the forward of its block"},
    {"AnUnstashThatDoesNotWaitForItsStash", swapped, none_waits(unstash), "does not wait for its stash"},
    {"AForwardIntoASlotThatIsStillCopied", swapped,
     without_waits_for(piece(ActionKind::forward, 1), stash, 2), "may still read it"},
    {"ABackwardThatDoesNotWaitForItsSegment", swapped, without_waits_for(backward_piece, unstash, 0),
     "does not wait for its segment, which comes from the host"},
    {"AnUnstashIntoASlotThatIsStillRead", swapped,
     without_waits_for(unstash, piece(ActionKind::backward, 2), 1), "may still read it"},
    {"AStashTwice", swapped, [](Lists& lists) { lists.at(stash, 1).micro_batch = 0; }, "runs a second time"},
    {"AStashOfAnotherSlot", swapped, naming(stash, &Action::segment, 1), "looks for a segment in slot 1"},
    {"AnUnstashOfAnotherPlace", swapped, naming(unstash, &Action::host, 2), "in place 2 on the host"},
    {"AStashIntoAPlaceThatIsTaken", swapped, naming(stash, &Action::host, 0, 1),
     "takes place on the host 0, where the segment of micro-batch 0 still lies"},
    {"ABackwardInAnotherSlot", swapped,
     [](Lists& lists) { lists.at(backward_piece).segment = 1 - lists.at(backward_piece).segment; },
     "looks for its segment in slot"},
    {"AForwardInAnotherSlot", swapped, naming(forward_piece, &Action::segment, 1), "where its input is not"},
    {"AnInputInNoSlot", swapped, naming(piece(ActionKind::forward, 1), &Action::to_segment, -1),
     "names no slot for the segment of block 2"},
    {"ASlotOfAKeptBlock", swapped, naming(piece(ActionKind::forward, 1), &Action::segment, 0),
     "names slot 0, but swaps no block"},
    {"ASwappedBlockBesideOthers", swapped,
     [](Lists& lists) {
       lists.at(piece(ActionKind::forward, 1)).last = 3;
       lists.leave_out(lists.find(forward_piece));
     },
     "runs block 2, which is swapped, beside others"},
    {"APassBetweenPieces", swapped,
     [](Lists& lists) {
       swap_places(lists.list(), lists.find(forward_piece, 0), lists.find(piece(ActionKind::forward, 0), 1));
       for (int i = 0; i < static_cast<int>(lists.list().size()); ++i)
         std::erase_if(lists.list()[i].after, [&](int earlier) { return earlier >= i; });
     },
     "between the pieces of one"},
    {"AStashOfAnotherTape", swapped, naming(stash, &Action::tape, 1), "in arena 1, which does not hold it"},
    {"AnUnstashOfNoTape", swapped, naming(unstash, &Action::tape, -1), "has no arena"},
    {"AStashBehindItsBackward", halves,
     [](Lists& lists) {
       lists.rank = 3;  // where segments stay
       const int place = lists.find(piece(ActionKind::backward_input, 9)) + 1;
       Action late = lists.list()[place - 1];
       late.kind = ActionKind::stash;
       late.queue = Queue::copy_out;
       late.waiting = late.from_buffer = late.to_buffer = -1;
       late.clears = late.fold = false;
       late.host = 0;
       late.after = {place - 1};
       for (Action& other : lists.list())
         for (int& earlier : other.after) earlier += earlier >= place ? 1 : 0;
       lists.list().insert(lists.list().begin() + place, late);
     },
     "comes behind the backward that reads the segment"},
    {"AStashOfAKeptBlock", swapped,
     [](Lists& lists) {
       lists.at(stash).first = 1;
       lists.at(stash).last = 2;
     },
     "of no swapped block"},
    {"AStashInAStepWithout", swapped, [](Lists& lists) { lists.outline.swapped.clear(); },
     "has no place in a step"},
};

class IsFoundOfASegment : public testing::TestWithParam<WrongList> {};

TEST_P(IsFoundOfASegment, AndSaidWithItsReason) {
  Lists lists = GetParam().make();
  EXPECT_THAT(lists.errors(), testing::IsEmpty());
  GetParam().spoil(lists);
  EXPECT_THAT(lists.errors(), testing::Contains(testing::HasSubstr(GetParam().sentence)));
}

INSTANTIATE_TEST_SUITE_P(Lists, IsFoundOfASegment, testing::ValuesIn(of_segments),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace mindpipe
