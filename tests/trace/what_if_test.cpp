#include "trace/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/check.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

class WhatIfs : public testing::Test {
 protected:
  /// The period that the drawn steps of a run have.
  double measured(const Fault& fault) {
    return static_cast<double>(replay(graph_, draw_times(run_, graph_, 12, fault, random_), 12).period());
  }
  /// The period that is expected of a run without a fault, with a change.
  double predicted(const std::string& change) {
    const StepTrace trace = trace_of(run_, graph_, draw_times(run_, graph_, 12, {}, random_));
    ReplayTimes expected = expected_times(measured_times(trace, graph_), graph_);
    WhatIf(change, graph_, hosts_).apply(expected);
    return static_cast<double>(replay(graph_, expected, 4).period());
  }
  std::string complaint(const std::string& change) const {
    try {
      const WhatIf what_if(change, graph_, hosts_);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::usage);
      return error.what();
    }
  }

  std::mt19937_64 random_{11};
  const MadeRun run_ = made_run({1, 2, 4, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph_{run_.grid, run_.plan.program};
  const std::vector<std::string> hosts_{"a", "a", "a", "a", "b", "b", "b", "b"};
};

TEST_F(WhatIfs, ComeTrue) {
  struct Case {
    std::string change;
    std::function<double(const Action&, int rank)> longer;
  };
  const Case cases[] = {
      {"rank:3=1.5", [](const Action& a, int rank) { return rank == 3 && !is_communication(a) ? 1.5 : 1; }},
      {"stage:0=0.5", [](const Action& a, int rank) { return rank < 2 && !is_communication(a) ? 0.5 : 1; }},
      {"kind:backward=0.8", [](const Action& a, int) { return a.kind == ActionKind::backward ? 0.8 : 1; }},
      {"axis:data=free", [](const Action& a, int) { return a.group == Members::data ? 0 : 1; }},
      {"axis:pipeline=20", [](const Action& a, int) { return is_message(a) ? 20 : 1; }},
      {"between-nodes=30",
       [](const Action& a, int rank) {
         const bool crosses = is_message(a) && std::minmax(rank / 2, a.peer) == std::minmax(1, 2);
         return crosses || a.group == Members::grid ? 30 : 1;
       }},
      {"link:2-1=30",
       [](const Action& a, int rank) {
         return is_message(a) && std::minmax(rank / 2, a.peer) == std::minmax(1, 2) ? 30 : 1;
       }},
  };
  for (const Case& one : cases) {
    Fault fault;
    fault.longer = [&](int, int action) { return one.longer(graph_.at(action), graph_.rank_of(action)); };
    const double truth = measured(fault), said = predicted(one.change);
    EXPECT_NEAR(said / truth, 1, 0.03) << one.change;
  }
}

TEST_F(WhatIfs, ComeTrueOfALinkOnWhichMessagesComeLater) {
  Fault fault;
  fault.longer = [&](int, int action) {
    const Action& what = graph_.at(action);
    const int stage = graph_.stage_of(action);
    const double paper = static_cast<double>(run_.paper[stage][graph_.index_of(action)]);
    const bool is_late =
        what.kind == ActionKind::receive && std::minmax(stage, what.peer) == std::minmax(1, 2);
    return is_late ? 1 + 700'000 / paper : 1;
  };
  const double truth = measured(fault);
  EXPECT_GT(truth, 1.02 * measured({}));
  EXPECT_NEAR(predicted("link:1-2=+700us") / truth, 1, 0.01);
}

TEST_F(WhatIfs, BringASlowRankBackToItsPeers) {
  Fault fault;
  fault.longer = [&](int, int action) { return graph_.rank_of(action) == 5 ? 1.6 : 1; };
  const StepTrace trace = trace_of(run_, graph_, draw_times(run_, graph_, 12, fault, random_));
  ReplayTimes expected = expected_times(measured_times(trace, graph_), graph_);
  WhatIf("rank:5=ideal", graph_, hosts_).apply(expected);
  EXPECT_NEAR(static_cast<double>(replay(graph_, expected, 4).period()) / measured({}), 1, 0.03);
}

TEST_F(WhatIfs, AreRefusedWhereTheyNameNothing) {
  EXPECT_THAT(complaint("rank:8=2"), HasSubstr("there is no rank '8' (there are 8, from 0 on)"));
  EXPECT_THAT(complaint("stage:x=2"), HasSubstr("there is no stage 'x' (there are 4, from 0 on)"));
  EXPECT_THAT(complaint("kind:evict=2"), HasSubstr("there are forward, backward"));
  EXPECT_THAT(complaint("kind:backward_weight=2"), HasSubstr("no actions of kind 'backward_weight'"));
  EXPECT_THAT(complaint("link:0-2=free"), HasSubstr("the steps have nothing that 'link:0-2' names"));
  EXPECT_THAT(complaint("axis:expert=free"), HasSubstr("there are pipeline, data, tensor"));
  EXPECT_THAT(complaint("axis:tensor=free"), HasSubstr("the steps have nothing that 'axis:tensor' names"));
  EXPECT_THAT(complaint("blocks=2"), HasSubstr("there is no selector 'blocks'"));
  EXPECT_THAT(complaint("rank:1"), HasSubstr("expected SELECTOR=FACTOR"));
  EXPECT_THAT(complaint("rank:1=fast"), HasSubstr("'fast' is no factor"));
  EXPECT_THAT(complaint("rank:1=-2"), HasSubstr("'-2' is no factor"));
  EXPECT_THAT(complaint("link:0-1=+soon"), HasSubstr("'+soon' is no time to add"));
  EXPECT_EQ(complaint("link:0-1=+2ms"), "");
  EXPECT_EQ(complaint("lag=0.5"), "");
}

}  // namespace
}  // namespace mindpipe
