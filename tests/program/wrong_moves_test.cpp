#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/moving_step.h"
#include "program/wrong_list.h"

// What can be wrong with the lists of a step that moves blocks, and what the checker says to it.
namespace mindpipe {
namespace {

Lists at_the_old_home() { return step_that_moves_blocks(1); }
Lists at_the_new_home() { return step_that_moves_blocks(0); }
SuchAction update_of(int unit) {
  return [=](const Action& a) { return a.kind == ActionKind::update && a.unit == unit; };
}
/// Takes out both ends of what is such, on all ranks.
std::function<void(Lists&)> without_message(const SuchAction& is_such) {
  return [=](Lists& lists) {
    const int looked_at = lists.rank;
    for (lists.rank = 0; lists.rank < 3; ++lists.rank)
      for (int place = static_cast<int>(lists.list().size()); place-- > 0;)
        if (is_such(lists.list()[place])) lists.leave_out(place);
    lists.rank = looked_at;
  };
}

const WrongList of_moves[] = {
    {"AnUpdateOnBothHomes", at_the_old_home,
     [](Lists& lists) {
       Action update = lists.at(update_of(5));
       update.unit = 4;
       lists.list().push_back(update);
     },
     "(update unit 4): unit 4 has left for rank 0, which updates it"},
    {"AnUpdateOnNoHome", at_the_new_home, [](Lists& lists) { lists.leave_out(lists.find(update_of(4))); },
     "rank 0: unit 4 is never updated"},
    {"AnUpdateBeforeItsState", at_the_new_home,
     without_waits_for(
         update_of(4), [](const Action& a) { return is_move(a); }, 0),
     "(update unit 4): does not wait for the state that comes from rank 1"},
    {"AnUpdateBeforeItsGradient", at_the_new_home,
     without_waits_for(
         update_of(4), [](const Action& a) { return a.payload == Payload::unit_gradient; }, 0),
     "(update unit 4): does not wait for the gradient that comes from rank 1"},
    {"AStateThatIsNotSent", at_the_old_home,
     without_message([](const Action& a) { return is_move(a) && a.units.front() == 7; }),
     "rank 1: the state of unit 7 never goes from rank 1 to rank 2, or not all of it"},
    {"APartOfAStateThatIsNotSent", at_the_old_home, without_message([](const Action& a) {
       return is_move(a) && a.units.front() == 7 && a.part + 1 == a.parts;
     }),
     "rank 2: the state of unit 7 never goes from rank 1 to rank 2, or not all of it"},
    {"AGradientThatIsNotSent", at_the_old_home,
     without_message([](const Action& a) { return a.payload == Payload::unit_gradient && a.unit == 4; }),
     "rank 0: the gradient of unit 4 never goes from rank 1 to rank 0, or not all of it"},
    {"TheStateOfTheNeighbour", at_the_old_home,
     [](Lists& lists) {
       for (auto& list : lists.program.ranks)
         for (Action& action : list)
           if (is_move(action) && action.units.front() == 4) action.units = {5};
     },
     "unit 5 does not move so"},
    {"AStateOfAStepThatMovesNothing", at_the_old_home,
     [](Lists& lists) { lists.outline.next_first_block.clear(); }, "has no place in a step"},
    {"AGradientBeforeItsSum", at_the_old_home,
     none_waits([](const Action& a) { return a.payload == Payload::unit_gradient; }),
     "does not wait for its sum over data"},
    {"AGatherLeftOutOnTheOldHome", at_the_old_home,
     [](Lists& lists) {
       lists.leave_out(
           lists.find([](const Action& a) { return a.kind == ActionKind::gather && a.unit == 4; }));
     },
     "rank 1: the values of unit 4 are never gathered, or not all of them"},
    {"APassOnTheOldHomeAfterTheCut", at_the_old_home,
     [](Lists& lists) {
       const Outline after = after_move(lists.outline);
       lists.program = make_program(after, "1f1b").program;
       lists.outline = after;
       --lists.at(of_kind(ActionKind::forward), 1).first;
     },
     "chunk 1 is the blocks [5, 7)"},
};

class IsFoundInAMovingStep : public testing::TestWithParam<WrongList> {};

TEST_P(IsFoundInAMovingStep, AndSaidWithItsReason) {
  Lists lists = GetParam().make();
  EXPECT_THAT(lists.errors(), testing::IsEmpty());
  GetParam().spoil(lists);
  EXPECT_THAT(lists.errors(), testing::Contains(testing::HasSubstr(GetParam().sentence)));
}

INSTANTIATE_TEST_SUITE_P(Lists, IsFoundInAMovingStep, testing::ValuesIn(of_moves),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace mindpipe
