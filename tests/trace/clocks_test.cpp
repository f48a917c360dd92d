#include "trace/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/check.h"
#include "trace/diagnosis.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

constexpr double ahead_ns = 7e6, ppm = 20;

/// A trace of two hosts, of which the second's clock is ahead and fast.
class TwoClocks : public testing::Test {
 protected:
  TwoClocks() {
    Fault slow;
    slow.longer = [this](int, int action) {
      return graph_.rank_of(action) == 1 && !is_communication(graph_.at(action)) ? 1.3 : 1;
    };
    true_ = skewed_ = trace_of(run_, graph_, draw_times(run_, graph_, 12, slow, random_));
    true_.hosts.assign(4, "a");
    skewed_.hosts = {"a", "a", "b", "b"};
    for (int rank : {2, 3})
      for (auto& step : skewed_.ranks[rank].steps)
        for (Recorder::Times& action : step) action = {shown(action.start), shown(action.end)};
  }

  static std::int64_t shown(std::int64_t time) {
    return time + std::llround(ahead_ns + ppm * 1e-6 * static_cast<double>(time));
  }
  /// Questions before and behind the steps, each 4 to 9 us on its way.
  void add_pings() {
    const auto way = [&] { return 4'000 + static_cast<std::int64_t>(random_() % 5'000); };
    for (const std::int64_t begin : {std::int64_t{900'000'000}, std::int64_t{1'300'000'000}})
      for (int ping = 0; ping < 50; ++ping) {
        const std::int64_t asked = begin + ping * 20'000, heard = asked + way(), back = heard + way();
        skewed_.ranks[2].pings.push_back({asked, shown(heard), shown(heard), back});
      }
  }
  /// How far the clock that was found is off the true one, anywhere in the trace.
  static double off(const HostClock& clock, const StepTrace& truth) {
    double worst = 0;
    for (const std::int64_t time :
         {truth.ranks[0].steps.front().front().start, truth.ranks[0].steps.back().back().end})
      worst = std::max(worst, std::abs(clock.ahead_at(static_cast<double>(time)) -
                                       static_cast<double>(shown(time) - time)));
    return worst;
  }
  static Diagnosis diagnosis_of(const StepTrace& trace) {
    return diagnose(trace, ReplayGraph(trace.grid, trace.program), {}, "trace");
  }
  void expect_same_diagnosis() const {
    const Diagnosis truth = diagnosis_of(true_), found = diagnosis_of(skewed_);
    ASSERT_FALSE(truth.causes.empty());
    ASSERT_EQ(found.causes.size(), truth.causes.size());
    for (std::size_t cause = 0; cause < truth.causes.size(); ++cause) {
      EXPECT_EQ(found.causes[cause].kind, truth.causes[cause].kind);
      EXPECT_EQ(found.causes[cause].rank, truth.causes[cause].rank);
      EXPECT_NEAR(found.causes[cause].factor, truth.causes[cause].factor, 0.005);
    }
  }

  std::mt19937_64 random_{9};
  const MadeRun run_ = made_run({1, 2, 2, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph_{run_.grid, run_.plan.program};
  StepTrace true_, skewed_;
};

TEST_F(TwoClocks, AreBroughtTogetherByMessagesAloneWithinTheBound) {
  const std::vector<HostClock> clocks = align_clocks(skewed_);
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_LE(off(clocks[1], true_), clocks[1].bound);
  EXPECT_LE(skewed_.clock_bound, 150'000);
  EXPECT_GT(skewed_.clock_bound, 0);
  EXPECT_NEAR(clocks[1].rate * 1e6, ppm, 300);
  expect_same_diagnosis();
}

TEST_F(TwoClocks, AreBroughtTogetherMoreCloselyByPings) {
  add_pings();
  const std::vector<HostClock> clocks = align_clocks(skewed_);
  EXPECT_LE(off(clocks[1], true_), clocks[1].bound);
  EXPECT_LE(skewed_.clock_bound, 20'000);
  EXPECT_NEAR(clocks[1].rate * 1e6, ppm, 20);
  expect_same_diagnosis();
}

TEST_F(TwoClocks, AreRefusedAsTheyAreWithByHowMuchEffectsComeBeforeCauses) {
  try {
    diagnosis_of(skewed_);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_data);
    EXPECT_THAT(error.what(),
                testing::ContainsRegex("effects come before their causes.*by up to (69|70)[0-9][0-9]"));
  }
}

TEST_F(TwoClocks, StayAsTheyAreWhereNothingCameBack) {
  EXPECT_FALSE(clock_between({{1, 2}}, {}).is_known);
  const HostClock clock = clock_between({{100, 1130}, {300, 1330}}, {{1180, 200}, {1390, 400}});
  EXPECT_TRUE(clock.is_known);
  EXPECT_NEAR(clock.ahead_at(250), 1005, 26);
}

}  // namespace
}  // namespace mindpipe
