#include "app/train/subnet_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "app/report/replay_files.h"
#include "app/report/subnet_page.h"
#include "config/config.h"
#include "plan/run_plan.h"
#include "spaces.h"
#include "supernet/sampler.h"
#include "trace/subnet_report.h"

// Traces of subnets that exist on paper alone: each rank runs its passes one after the other, as long as
// prices say.
namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int subnets = 64;

Config run_on(int lanes, int data) {
  Config c;
  c.run.dir = "unused";
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.model.kind = ModelKind::supernet;
  c.schedule.kind = ScheduleKind::causal;
  c.model.supernet.space = space_from(
      "{name: f, decoder: {blocks: 16, candidates: [attention-4, glu, light-3-4, conv-3, mlp-4, identity]}}");
  c.model.supernet.width = 32;
  c.model.supernet.context = c.data.sequence = 16;
  c.grid.supernet = lanes;
  c.grid.pipeline = 4;
  c.grid.data = data;
  c.train.batch = 8;
  c.train.micro_batch = 4;
  c.train.steps = subnets;
  c.supernet.prices = "equal";
  return resolve(c);
}

/// How many times as long as its price a rank's passes of a subnet take.
using Slower = std::function<double(int rank, std::int64_t subnet)>;

StepTrace trace_on(const Config& config, const Slower& slower) {
  constexpr double prices[] = {2.5, 1.5, 0.6, 1.2, 1.6, 0.1}, shared = 0.4, noise = 0.03;
  constexpr std::int64_t zero = 1'000'000'000;
  const RunPlan plan = make_run_plan(config);
  StepTrace trace{.grid = degrees_of(config.grid), .of_subnets = true, .steps = {1}};
  trace.configuration = to_yaml(config);
  trace.ranks.resize(num_ranks(trace.grid));
  trace.hosts.assign(trace.ranks.size(), "a");
  std::vector<Subnet> drawn;
  const auto stream = stream_of(config);
  while (std::ssize(drawn) < subnets) drawn.push_back(stream->next());
  std::mt19937 random(5);
  const auto add = [&](int rank, Action action, double lasts, std::vector<Action>& list) {
    const double scatter = 1 + noise * (2 * static_cast<double>(random()) / 4294967296.0 - 1);
    std::vector<Recorder::Times>& times = trace.ranks[rank].steps.front();
    const std::int64_t start = times.empty() ? zero : times.back().end;
    times.push_back({start, start + std::llround(1e6 * lasts * scatter * slower(rank, action.owner.number))});
    list.push_back(action);
  };
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    trace.ranks[rank].steps.resize(1);
    trace.ranks[rank].sums.resize(1);
    trace.ranks[rank].host.resize(1);
    const Coord at = coord_at(trace.grid, static_cast<int>(rank));
    const int first = plan.outline.first_block[at.pipeline], last = plan.outline.first_block[at.pipeline + 1];
    std::vector<Action> list;
    for (std::int64_t id = at.supernet; id < subnets; id += trace.grid.supernet) {
      double lasts = 0;
      for (int block = first; block < last; ++block)
        lasts += block == 0 || block + 1 == plan.outline.all_blocks() ? shared
                                                                      : prices[drawn[id].choice[block - 1]];
      Action action{.kind = ActionKind::forward, .owner = {Owner::subnet, id}, .first = first, .last = last};
      for (action.micro_batch = 0; action.micro_batch < 2; ++action.micro_batch) {
        action.kind = ActionKind::forward;
        add(static_cast<int>(rank), action, lasts, list);
        action.kind = ActionKind::backward;
        add(static_cast<int>(rank), action, 1.7 * lasts, list);
      }
    }
    if (at.data != 0) continue;
    trace.program.ranks.resize(
        std::max(trace.program.ranks.size(), std::size_t(program_rank_at(trace.grid, at) + 1)));
    trace.program.ranks[program_rank_at(trace.grid, at)] = std::move(list);
  }
  for (const std::vector<Action>& list : trace.program.ranks) trace.paper.emplace_back(list.size(), 0);
  return trace;
}

SubnetCauses causes_in(const StepTrace& trace) {
  const ReplayGraph graph(trace.grid, trace.program);
  return subnet_causes(trace, graph, sound_times(trace, graph, "trace"), "trace");
}

TEST(SubnetCauses, NameTheRankOfOneLaneThatIsSlow) {
  const int slow = rank_at({1, 1, 4, 2}, {0, 0, 2, 1});
  const StepTrace trace =
      trace_on(run_on(2, 1), [&](int rank, std::int64_t) { return rank == slow ? 1.4 : 1; });
  const SubnetCauses found = causes_in(trace);
  ASSERT_EQ(found.causes.size(), 1);
  EXPECT_EQ(std::tuple(found.causes[0].kind, found.causes[0].rank, found.causes[0].stage),
            std::tuple(Cause::slow_rank, slow, 2));
  EXPECT_NEAR(found.causes[0].factor, 1.4, 0.03);
  for (const double stage : found.prices->stages)
    EXPECT_EQ(stage, 1) << "one lane's rank makes no stage slow";

  const ReplayGraph graph(trace.grid, trace.program);
  Diagnosis diagnosis = diagnose(trace, graph, {}, "trace");
  diagnosis.causes = found.causes;
  const char* sentence = "rank 6 (lane 1, stage 2, data 0, tensor 0) computes 1.";
  EXPECT_THAT(text_of_subnets(diagnosis, trace, graph, ""), HasSubstr(std::string("\n- ") + sentence));
  EXPECT_THAT(subnet_page(diagnosis, trace, graph, "run", ""), HasSubstr(std::string("<li>") + sentence));
  EXPECT_THAT(first_lines_of_subnets(trace, "trace"), testing::ElementsAre(HasSubstr(sentence)));
  const auto json = nlohmann::json::parse(replay_json(diagnosis, trace, graph));
  EXPECT_EQ(json["causes"][0]["rank"], 6);
  EXPECT_EQ(json["causes"][0]["lane"], 1);
  EXPECT_EQ(json["causes"][0]["stage"], 2);
  EXPECT_NEAR(json["causes"][0]["factor"], 1.4, 0.03);
  EXPECT_THAT(json["causes"][0]["text"],
              AllOf(HasSubstr(sentence), HasSubstr("subnets since subnet 1;")));
}

TEST(SubnetCauses, NameAReplicaThatIsSlow) {
  const int slow = rank_at({1, 2, 4, 1}, {0, 1, 1, 0});
  const StepTrace trace =
      trace_on(run_on(1, 2), [&](int rank, std::int64_t) { return rank == slow ? 1.2 : 1; });
  const SubnetCauses found = causes_in(trace);
  ASSERT_EQ(found.causes.size(), 1);
  EXPECT_EQ(found.causes[0].rank, slow);
  EXPECT_NEAR(found.causes[0].factor, 1.2, 0.03);
}

TEST(SubnetCauses, AccuseNobodyWhereAllAreAlike) {
  const auto alike = [](int, std::int64_t) { return 1.0; };
  EXPECT_TRUE(causes_in(trace_on(run_on(2, 1), alike)).causes.empty());
  EXPECT_TRUE(causes_in(trace_on(run_on(2, 2), alike)).causes.empty());
  const auto of_all_lanes = [](int rank, std::int64_t) { return rank % 4 == 2 ? 1.4 : 1.0; };
  const SubnetCauses stage = causes_in(trace_on(run_on(2, 1), of_all_lanes));
  EXPECT_TRUE(stage.causes.empty());
  EXPECT_NEAR(stage.prices->stages[2], 1.4, 0.03);
  const auto for_a_while = [](int rank, std::int64_t subnet) { return rank == 6 && subnet < 24 ? 1.4 : 1.0; };
  EXPECT_TRUE(causes_in(trace_on(run_on(2, 1), for_a_while)).causes.empty());
}

}  // namespace
}  // namespace mindpipe
