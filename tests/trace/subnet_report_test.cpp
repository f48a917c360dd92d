#include "trace/subnet_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trace/made_run.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Two stages of which the first is slow: the second waits for what it reads, the first for nobody.
class TwoStages : public testing::Test {
 protected:
  TwoStages() {
    for (auto& list : run_.plan.program.ranks)
      for (Action& action : list) action.owner.number = 7 + action.micro_batch / 4;
    Fault fault;
    fault.longer = [&](int, int action) {
      return graph_.rank_of(action) == 0 && !is_communication(graph_.at(action)) ? 1.5 : 1.0;
    };
    std::mt19937_64 random(7);
    trace_ = trace_of(run_, graph_, draw_times(run_, graph_, 1, fault, random));
    trace_.of_subnets = true;
  }

  MadeRun run_ = made_run({1, 1, 2, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph_{run_.grid, run_.plan.program};
  StepTrace trace_;
};

TEST_F(TwoStages, WaitForWhatTheyReadAndTheirTimesAddUp) {
  const std::vector<StageTime> stages = stage_times(trace_, graph_);
  ASSERT_EQ(stages.size(), 2);
  for (int stage = 0; stage < 2; ++stage) {
    const std::vector<Recorder::Times>& times = trace_.ranks[stage].steps.front();
    std::int64_t begin = times.back().end, end = 0;
    for (int action = graph_.first_of(stage); action < graph_.first_of(stage + 1); ++action)
      if (graph_.at(action).queue == Queue::compute) {
        begin = std::min(begin, times[graph_.index_of(action)].start);
        end = std::max(end, times[graph_.index_of(action)].end);
      }
    const StageTime& time = stages[stage];
    const std::int64_t waits = std::accumulate(time.waits.begin(), time.waits.end(), std::int64_t{0});
    EXPECT_EQ(time.computes + time.host + waits, end - begin) << stage;
    EXPECT_LT(20 * time.host, time.computes) << "what is waited for is not the host's";
  }
  const auto input = static_cast<std::size_t>(WaitReason::input);
  EXPECT_GT(stages[1].waits[input], 5'000'000);
  EXPECT_GT(stages[1].waits[input], stages[0].waits[input]);
}

TEST_F(TwoStages, SayWhoWaitedForWhat) {
  const Diagnosis diagnosis = diagnose(trace_, graph_, {}, "trace");
  EXPECT_THAT(
      text_of_subnets(diagnosis, trace_, graph_, "stage 0 takes 1.50 times as long as others"),
      AllOf(HasSubstr("subnets 7 to 8 on 2 ranks"), HasSubstr("(0.00 %, every begin within 0.0 us"),
            HasSubstr("stood idle for"), HasSubstr("since what it reads had not come: "),
            HasSubstr("began when receive"), HasSubstr("- stage 0 takes 1.50 times as long as others\n")));
}

}  // namespace
}  // namespace mindpipe
