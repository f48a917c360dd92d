#include "trace/run_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/made_run.h"

namespace mindpipe {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class TwoRuns : public testing::Test {
 protected:
  StepTrace run(const Fault& fault) {
    return trace_of(run_, graph_, draw_times(run_, graph_, 12, fault, random_));
  }
  std::string said(const StepTrace& before, const StepTrace& after) const {
    return text_of_changes(before, after, "one", "other");
  }

  std::mt19937_64 random_{3};
  const MadeRun run_ = made_run({1, 2, 3, 1}, 6, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph_{run_.grid, run_.plan.program};
};

TEST_F(TwoRuns, DifferInTheRankThatHasBecomeSlow) {
  Fault slow;
  slow.longer = [this](int, int action) {
    return graph_.rank_of(action) == 3 && !is_communication(graph_.at(action)) ? 1.4 : 1;
  };
  const StepTrace before = run({}), after = run(slow);
  const std::vector<RunChange> changes =
      changes_between(graph_, measured_times(before, graph_), measured_times(after, graph_));
  ASSERT_FALSE(changes.empty());
  EXPECT_THAT(changes[0].what, HasSubstr("rank 3 (stage 1, data 1, tensor 0) computes"));
  EXPECT_NEAR(changes[0].factor, 1.4, 0.02);
  EXPECT_GT(changes[0].costs, 0);
  EXPECT_THAT(said(before, after), ContainsRegex("rank 3 .stage 1, data 1, tensor 0. computes 1.(39|4)"));
  EXPECT_THAT(said(after, before), HasSubstr("% shorter"));
}

TEST_F(TwoRuns, DifferInALinkAndInTheHost) {
  Fault link;
  link.longer = [this](int, int action) {
    const Action& what = graph_.at(action);
    return is_message(what) && std::minmax(graph_.stage_of(action), what.peer) == std::minmax(1, 2) ? 20 : 1;
  };
  EXPECT_THAT(said(run({}), run(link)), ContainsRegex("messages between stages 1 and 2 take (19|20)\\."));
  Fault host;
  host.later = [this](int, int action) {
    return graph_.at(action).queue == Queue::compute ? std::int64_t{200'000} : std::int64_t{0};
  };
  EXPECT_THAT(said(run({}), run(host)), HasSubstr("the host between actions takes"));
}

TEST_F(TwoRuns, AreEqualWhereNothingChanged) {
  EXPECT_THAT(said(run({}), run({})), HasSubstr("nothing alone makes a hundredth"));
}

TEST_F(TwoRuns, OfTwoProgramsDifferInWhereTheirStepsGo) {
  const MadeRun other = made_run({1, 2, 3, 1}, 6, ScheduleKind::gpipe);
  const ReplayGraph graph(other.grid, other.plan.program);
  const StepTrace after = trace_of(other, graph, draw_times(other, graph, 12, {}, random_));
  EXPECT_THAT(said(run({}), after), HasSubstr("another program or grid; where their steps go"));
}

}  // namespace
}  // namespace mindpipe
