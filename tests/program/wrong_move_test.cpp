#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/check/checker_parts.h"
#include "program/sample_space.h"

// Mistakes in the moves of units between lanes, which the checker finds.
namespace mindpipe {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// One rank's list of 60 subnets on two lanes of two stages, as it was written.
class WrongMove : public testing::Test {
 protected:
  WrongMove() : outline_(sample_lanes(2, 2, 3, 1, 0.5)) {
    for (UnitCost& unit : outline_.units) unit.moved = 3 << 20;
    subnets_ = sample_subnets(outline_, Draw::uniform, 60, 1);
    plan();
    list_ = list_of_starts(outline_, rules_.window, rank, starts_);
  }
  void plan() {
    planner_ = std::make_unique<CausalPlanner>(outline_, sample_network(1), rules_);
    starts_ = planned(*planner_, subnets_);
  }
  std::vector<std::string> errors() const {
    return StretchCheck(outline_, rules_, rank).check(list_, subnets_, true);
  }
  Action& find(bool outgoing, int nth = 5) {
    for (Action& action : list_.actions)
      if (is_move(action) && sends(action) == outgoing && action.parts > 1 &&
          action.part + 1 == action.parts && !action.after.empty() && nth-- == 0)
        return action;
    throw std::logic_error("no such move");
  }
  /// Takes an action out of the list, as if nobody waited for it.
  void leave_out(const Action& gone) {
    const int at = static_cast<int>(&gone - list_.actions.data());
    list_.actions.erase(list_.actions.begin() + at);
    list_.times.erase(list_.times.begin() + at);
    for (Action& action : list_.actions) {
      std::erase(action.after, at);
      for (int& earlier : action.after) earlier -= earlier > at ? 1 : 0;
    }
  }

  static constexpr int rank = 1;
  Outline outline_;
  SubnetRules rules_{.admission = 16};
  std::vector<Subnet> subnets_;
  std::unique_ptr<CausalPlanner> planner_;  ///< which keeps the units of its tasks
  std::vector<Task> starts_;
  ListStretch list_;
};

TEST_F(WrongMove, NothingIsFoundWhereNothingIsWrong) { EXPECT_THAT(errors(), IsEmpty()); }

TEST_F(WrongMove, AMoveBeforeTheUpdateItFollows) {
  find(true).after.clear();
  EXPECT_THAT(errors(), Contains(HasSubstr("does not wait for what was last done to unit")));
}

TEST_F(WrongMove, AnArrivalOverWhatIsStillRead) {
  find(false).after.clear();
  EXPECT_THAT(errors(), Contains(HasSubstr("does not wait for what was last done to unit")));
}

TEST_F(WrongMove, AMoveThatIsLeftOut) {
  Action& last = find(false);
  for (int left = last.parts; left > 0; --left) leave_out(find(false));
  EXPECT_THAT(errors(), Contains(HasSubstr("is on another rank")));
}

TEST_F(WrongMove, APartTooFew) {
  leave_out(find(false));
  EXPECT_THAT(errors(), Contains(HasSubstr("is part 1 of 2, where part 3 is next")));
}

TEST_F(WrongMove, AUnitOfAMessageThatIsLeftOut) {
  Action& last = find(false);
  for (Action* part = &last; part->part >= 0 && is_move(*part); --part) {
    part->units.pop_back();
    if (part->part == 0) break;
  }
  EXPECT_THAT(errors(), Contains(HasSubstr("finds version 0 of unit")));
}

TEST_F(WrongMove, AForwardThatDoesNotWaitForItsUnits) {
  const int arrival = static_cast<int>(&find(false) - list_.actions.data());
  for (Action& action : list_.actions)
    if (is_forward(action)) std::erase(action.after, arrival);
  EXPECT_THAT(errors(), Contains(HasSubstr("does not wait for units")));
}

TEST_F(WrongMove, AStartBeforeItsUnitsHaveArrived) {
  StartsCheck check(outline_);
  EXPECT_THAT(check.check(starts_, 0, 60), IsEmpty());
  for (Task& start : starts_)
    if (start.kind == TaskKind::move) start.end += 20'000'000;
  EXPECT_THAT(StartsCheck(outline_).check(starts_, 0, 60),
              Contains(HasSubstr("runs before its units have arrived")));
}

TEST_F(WrongMove, AMoveThatStartsBeforeTheUpdate) {
  for (Task& start : starts_)
    if (start.kind == TaskKind::move) start.start -= 1'000'000;
  EXPECT_THAT(StartsCheck(outline_).check(starts_, 0, 60),
              Contains(HasSubstr("moves a unit that has yet to be updated")));
}

TEST_F(WrongMove, AMoveOfNothing) {
  for (Task& start : starts_)
    if (start.kind == TaskKind::move) start.units = {};
  EXPECT_THAT(StartsCheck(outline_).check(starts_, 0, 60), Contains(HasSubstr("moves no unit")));
}

}  // namespace
}  // namespace mindpipe
