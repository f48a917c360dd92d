#include "trace/traced_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "trace/causes.h"
#include "trace/levels.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

using testing::StartsWith;

/// A run whose sums over data run beside its messages.
class Traffic : public testing::Test {
 protected:
  Traffic() {
    for (std::size_t stage = 0; stage < run_.paper.size(); ++stage)
      for (std::size_t index = 0; index < run_.paper[stage].size(); ++index) {
        const Action& what = run_.plan.program.ranks[stage][index];
        if (is_collective(what) && what.group == Members::data) run_.paper[stage][index] = 3'000'000;
        if (is_message(what)) run_.paper[stage][index] = 300'000;
      }
  }
  StepTrace traced(const ReplayTimes& times) { return trace_of(run_, graph_, times); }

  /// Lets messages lose the time in which sums over data are under way at their ranks.
  ReplayTimes held_up(ReplayTimes times) {
    const StepTrace trace = traced(times);
    for (std::size_t step = 0; step < times.rows.size(); ++step)
      for (int action = 0; action < graph_.actions(); ++action) {
        const int meeting = graph_.meeting_of(action);
        if (meeting < 0 || !crosses_cut(graph_.at(action))) continue;
        std::int64_t beside = 0;
        for (const int member : graph_.members(meeting))
          beside = std::max(beside, sums_beside(trace, times, step, action, graph_.rank_of(member)));
        times.rows[step].lasts[action] += beside;
      }
    return times;
  }

  std::mt19937_64 random_{5};
  MadeRun run_ = made_run({1, 2, 2, 1}, 8, ScheduleKind::breadth_first, 4);
  const ReplayGraph graph_{run_.grid, run_.plan.program};

 private:
  /// How long a rank's sums over data are under way while a message is.
  std::int64_t sums_beside(const StepTrace& trace, const ReplayTimes& times, std::size_t step, int message,
                           int rank) const {
    const std::int64_t end = at(trace, step, message).end, begin = end - times.rows[step].lasts[message];
    std::int64_t beside = 0;
    for (int other = graph_.first_of(rank); other < graph_.first_of(rank + 1); ++other) {
      if (!is_collective(graph_.at(other)) || graph_.at(other).group != Members::data) continue;
      const std::int64_t until = at(trace, step, other).end, from = until - times.rows[step].lasts[other];
      beside += std::max<std::int64_t>(0, std::min(end, until) - std::max(begin, from));
    }
    return std::min(beside, end - begin);
  }
  const Recorder::Times& at(const StepTrace& trace, std::size_t step, int action) const {
    return trace.ranks[graph_.rank_of(action)].steps[step][graph_.index_of(action)];
  }
};

TEST_F(Traffic, BetweenNodesPassesPortsOfTheNet) {
  StepTrace trace = traced(draw_times(run_, graph_, 2, {}, random_));
  const std::vector<std::int64_t> usual(graph_.actions(), 1000);
  using Levels = std::set<std::pair<bool, Level>>;  // of messages, and of sums
  const auto levels = [&](int ranks_per_node) {
    trace.ranks_per_node = ranks_per_node;
    const PortTransfers transfers(trace, graph_, usual, 0);
    Levels found;
    for (int action = 0; action < graph_.actions(); ++action)
      if (const auto transfer = transfers.of(action))
        found.emplace(crosses_cut(graph_.at(action)), transfer->level);
    return found;
  };
  EXPECT_EQ(levels(0), (Levels{{true, Level::node}, {false, Level::node}}));
  EXPECT_EQ(levels(2), (Levels{{true, Level::net}, {false, Level::node}}));
  EXPECT_EQ(levels(1), (Levels{{true, Level::net}, {false, Level::net}}));
}

TEST_F(Traffic, ThatDelaysOtherTrafficIsNamedWithWhatItCosts) {
  const ReplayTimes drawn = draw_times(run_, graph_, 12, {}, random_);
  const StepTrace free = traced(drawn), trace = traced(held_up(drawn));
  const ReplayTimes measured = measured_times(trace, graph_);
  const TracedPorts traffic(trace, graph_, measured);
  ASSERT_EQ(traffic.found().size(), 1);
  EXPECT_GT(traffic.found()[0].share, 0.15);
  const PortCosts costs = traffic.costs(Counted::behind_the_first);
  ASSERT_EQ(costs.pairs.size(), 1);
  EXPECT_EQ(costs.pairs[0].waits, TrafficClass::pipeline);
  EXPECT_EQ(costs.pairs[0].holds, TrafficClass::gradients);
  const auto period = [&](const StepTrace& of) {
    return replay(graph_, measured_times(of, graph_), 12).period();
  };
  EXPECT_EQ(costs.time, period(trace));
  const auto lost = static_cast<double>(period(trace) - period(free));
  EXPECT_NEAR(static_cast<double>(costs.pairs[0].cost), lost, 0.15 * lost);

  const WorkModel model(graph_, measured, run_.paper);
  const auto causes =
      causes_of(trace, graph_, measured, model, run_.paper, Counted::behind_the_first, &traffic);
  const auto found = std::find_if(causes.begin(), causes.end(),
                                  [](const Cause& cause) { return cause.kind == Cause::contention; });
  ASSERT_NE(found, causes.end());
  EXPECT_EQ(found->saves, costs.pairs[0].cost);
  EXPECT_THAT(text_of(*found, graph_, costs.time),
              StartsWith(pair_text(costs.pairs[0], costs, "step") + ";"));
  const auto levels = levels_of(graph_, measured, model, Counted::behind_the_first, &traffic);
  std::int64_t sum = 0;
  for (const StepLevel& level : levels) sum += level.costs;
  EXPECT_EQ(sum, levels.front().period - levels.back().period);
}

TEST_F(Traffic, ThatMeetsWithoutADelayIsNotAccused) {
  const StepTrace trace = traced(draw_times(run_, graph_, 12, {}, random_));
  const ReplayTimes measured = measured_times(trace, graph_);
  const TracedPorts traffic(trace, graph_, measured);
  EXPECT_TRUE(traffic.costs(Counted::behind_the_first).pairs.empty());
  const WorkModel model(graph_, measured, run_.paper);
  for (const Cause& cause :
       causes_of(trace, graph_, measured, model, run_.paper, Counted::behind_the_first, &traffic))
    EXPECT_NE(cause.kind, Cause::contention);
}

}  // namespace
}  // namespace mindpipe
