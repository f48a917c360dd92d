#include "program/check/sum_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "core/sum_lists.h"
#include "program/check/tree_proof.h"
#include "program/checked_lists.h"

// What the book of sums says to lists by itself, without the other books.
namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> said_of(const Lists& lists) {
  Reading reading(lists.outline, ListOf::step, lists.rank);
  SumBook book(reading);
  reading.extend(lists.program.ranks[lists.rank]);
  while (reading.next()) book.see();
  book.end();
  return reading.findings.take();
}

SuchAction part_of_kind(ActionKind kind, int nth_part = 0) {
  return [=](const Action& action) { return action.kind == kind && action.part == nth_part; };
}
SuchAction gradient_end(bool sent) {
  return
      [=](const Action& action) { return action.payload == Payload::unit_gradient && sends(action) == sent; };
}

Lists of_halves() { return lists_of_halves(with_everything(equal_stages(3, 4, 1, {}, 2))); }
Lists of_two_blocks() { return lists_of_halves(equal_stages(1, 4, 1, {}, 2)); }
Lists of_parts() {
  Outline outline = with_everything(equal_stages(2, 4));
  for (UnitCost& unit : outline.units)
    if (unit.values > 0) unit.gradients = unit.values = 10 << 20;
  return lists_of_step(outline, "1f1b");
}

struct WrongSum {
  const char* name;
  std::function<Lists()> make;
  std::function<void(Lists&)> spoil;
  const char* sentence;
};
void PrintTo(const WrongSum& wrong, std::ostream* out) { *out << wrong.name; }

const WrongSum wrong_sums[] = {
    {"AMicroBatchTwice", of_halves,
     [](Lists& lists) { lists.at(part_of_kind(ActionKind::backward_input), 1).micro_batch = 0; },
     "is the sum of micro-batches [0, 1), to which micro-batch 0 is added"},
    {"AMicroBatchLeftOut", of_halves,
     [](Lists& lists) { lists.leave_out(lists.find(part_of_kind(ActionKind::backward_weight))); },
     "shard 0 is the sum of micro-batches [1, 2), and is folded as that of [0, 2)"},
    {"AMicroBatchLeftOutOfTheSecondBlock", of_two_blocks,
     [](Lists& lists) { lists.leave_out(lists.find(part_of_kind(ActionKind::backward_weight))); },
     "the gradient of unit 1 in block 1"},
    {"NothingZeroed", of_halves,
     [](Lists& lists) { lists.at(part_of_kind(ActionKind::backward_input)).clears = false; },
     "is added to what nobody has zeroed"},
    {"AFoldIntoAnotherShard", of_parts,
     [](Lists& lists) { lists.at(part_of_kind(ActionKind::backward), 1).shard = 1; },
     "and is folded as that of [2, 4)"},
    {"AFoldLeftOut", of_halves,
     [](Lists& lists) { lists.at(part_of_kind(ActionKind::backward_weight), 1).fold = false; },
     "is folded, but shard 0 is next"},
    {"ASumOfAnotherUse", of_parts, [](Lists& lists) { lists.at(part_of_kind(ActionKind::reduce)).first = 1; },
     "in block 1 is not made here"},
    {"APartLeftOut", of_parts,
     [](Lists& lists) { lists.leave_out(lists.find(part_of_kind(ActionKind::reduce, 1))); },
     "is summed over data in other parts"},
    {"ASumBeforeItsLastBackward", of_parts,
     [](Lists& lists) {
       const int sum = lists.find(part_of_kind(ActionKind::reduce));
       for (Action& action : lists.list()) action.after.clear();  // places move
       std::rotate(lists.list().begin(), lists.list().begin() + sum, lists.list().begin() + sum + 1);
     },
     "has 0 of 2 shards"},
    {"AUseThatNeverArrives", of_parts, [](Lists& lists) { lists.leave_out(lists.find(gradient_end(false))); },
     "the gradient of unit 0 in block 1 arrives out of order, or a second time"},
    {"AUseThatLeavesBeforeItsSum", of_parts,
     [](Lists& lists) {
       lists.leave_out(lists.find([](const Action& action) {
         return action.kind == ActionKind::reduce && action.part + 1 == action.parts;
       }));
     },
     "leaves before all of it is summed over data"},
    {"AnUpdateBeforeTheDecision", of_parts,
     [](Lists& lists) { lists.leave_out(lists.find(part_of_kind(ActionKind::sum_scalar))); },
     "the step is not decided"},
    {"AnUpdateTwice", of_parts,
     [](Lists& lists) { lists.list().push_back(lists.at(part_of_kind(ActionKind::update))); },
     "has its next version"},
    {"AForwardBehindTheUpdate", of_parts,
     [](Lists& lists) { lists.list().push_back(lists.at(part_of_kind(ActionKind::forward))); },
     "reads unit 0 behind its update"},
    {"AGatherLeftOut", of_parts,
     [](Lists& lists) {
       for (int place = static_cast<int>(lists.list().size()); place-- > 0;)
         if (lists.list()[place].kind == ActionKind::gather) lists.leave_out(place);
     },
     "reads unit 0, of which parts are old"},
    {"AGatherOfOnePart", of_parts,
     [](Lists& lists) { lists.leave_out(lists.find(part_of_kind(ActionKind::gather, 1))); },
     "another part of unit 0 is next"},
    {"AGatherBehindItsFirstUse", of_parts,
     [](Lists& lists) {
       const int last_part = lists.find([](const Action& action) {
         return action.kind == ActionKind::gather && action.part + 1 == action.parts;
       });
       lists.move_behind(last_part, lists.find(part_of_kind(ActionKind::forward)));
     },
     "reads unit 0, of which parts are old"},
};

class SumBookSays : public testing::TestWithParam<WrongSum> {};

TEST_P(SumBookSays, WhatIsWrong) {
  Lists lists = GetParam().make();
  ASSERT_THAT(said_of(lists), IsEmpty());
  GetParam().spoil(lists);
  EXPECT_THAT(said_of(lists), testing::Contains(HasSubstr(GetParam().sentence)));
}

INSTANTIATE_TEST_SUITE_P(Of, SumBookSays, testing::ValuesIn(wrong_sums),
                         [](const auto& wrong) { return std::string(wrong.param.name); });

TEST(SumBook, WantsForwardsToWaitForTheirValues) {
  Lists lists = of_parts();
  lists.at(part_of_kind(ActionKind::forward)).after.clear();
  EXPECT_THAT(said_of(lists), testing::Contains(HasSubstr("does not wait for the values of unit 0")));
}

TEST(TreeProof, HoldsForEveryShareOfEveryTree) {
  for (int leaves = 1; leaves <= 96; ++leaves)
    for (int ranks = 1; ranks <= leaves; ++ranks) {
      if (leaves % ranks > 0) continue;
      EXPECT_EQ(fault_of_tree(leaves, ranks), "") << leaves << ' ' << ranks;
    }
  EXPECT_EQ(fault_of_tree(4096, 1024), "");
}

TEST(TreeProof, KnowsTheNodesOfTheTreeAlone) {
  // The tree of six leaves joins {0 1}{2 3}{4 5}, then the first two, then all.
  const auto node = [](int first, int middle, int last) {
    return node_of(6, {first, middle}, {middle, last}).has_value();
  };
  EXPECT_TRUE(node(0, 1, 2) && node(2, 3, 4) && node(4, 5, 6) && node(0, 2, 4) && node(0, 4, 6));
  EXPECT_FALSE(node(1, 2, 3) || node(2, 4, 6) || node(0, 2, 6) || node(0, 1, 4) || node(3, 4, 5));
  EXPECT_FALSE(node_of(6, {0, 1}, {2, 3}).has_value());
}

}  // namespace
}  // namespace mindpipe
