#include "trace/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "trace/causes.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// Forwards and backwards of 1F1B with free messages between stages, as many buffers as it takes, and a sum
/// of scalars that takes no time at the end of a step.
std::vector<Action> plain_list(int stage, int stages, int micro_batches) {
  std::vector<Action> list;
  const auto message = [&](ActionKind kind, Payload payload, int peer, int micro_batch) {
    Action action = action_of(kind);
    action.payload = payload;
    action.peer = peer;
    action.micro_batch = micro_batch;
    list.push_back(action);
    return static_cast<int>(list.size()) - 1;
  };
  const auto pass = [&](ActionKind kind, int micro_batch) {
    const bool forward = kind == ActionKind::forward;
    const int before = forward ? stage - 1 : stage + 1, behind = forward ? stage + 1 : stage - 1;
    const Payload payload = forward ? Payload::activation : Payload::gradient;
    Action action = action_of(kind);
    action.micro_batch = micro_batch;
    action.chunk = action.first = stage;
    action.last = stage + 1;
    if (before >= 0 && before < stages)
      action.after.push_back(message(ActionKind::receive, payload, before, micro_batch));
    list.push_back(action);
    const int own = static_cast<int>(list.size()) - 1;
    if (behind >= 0 && behind < stages)
      list[message(ActionKind::send, payload, behind, micro_batch)].after.push_back(own);
  };
  const int warm_up = std::min(micro_batches, stages - 1 - stage);
  for (int j = 0; j < warm_up; ++j) pass(ActionKind::forward, j);
  for (int j = 0; j < micro_batches; ++j) {
    if (warm_up + j < micro_batches) pass(ActionKind::forward, warm_up + j);
    pass(ActionKind::backward, j);
  }
  list.push_back(action_of(ActionKind::sum_scalar));
  return list;
}

/// One of the traces of others, by its name.
MadeRun others_run(const std::string& name, ReplayTimes& times) {
  std::map<std::tuple<int, int, int, char>, std::vector<std::int64_t>> all;
  std::ifstream file(MINDPIPE_SOURCE_DIR "/data/straggler/straggler_compute.csv");
  int steps = 0, stages = 0, replicas = 0, micro_batches = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(words, cell, ',');) cells.push_back(cell);
    if (cells.front() != name) continue;
    const int step = std::stoi(cells[1]), data = std::stoi(cells[2]), stage = std::stoi(cells[3]);
    auto& row = all[{step, data, stage, cells[4].front()}];
    for (std::size_t j = 5; j < cells.size(); ++j) row.push_back(1000 * std::stoll(cells[j]));
    steps = std::max(steps, step + 1);
    stages = std::max(stages, stage + 1);
    replicas = std::max(replicas, data + 1);
    micro_batches = static_cast<int>(row.size());
  }
  MadeRun run{.grid = {.tensor = 1, .data = replicas, .pipeline = stages, .supernet = 1}};
  for (int stage = 0; stage < stages; ++stage) {
    run.plan.program.ranks.push_back(plain_list(stage, stages, micro_batches));
    run.paper.emplace_back(run.plan.program.ranks.back().size(), 0);
  }
  const ReplayGraph graph(run.grid, run.plan.program);
  times.sums_of.assign(graph.actions() + 1, 0);
  for (int step = 0; step < steps; ++step) {
    ReplayRow& row = times.rows.emplace_back();
    row.lag.resize(graph.actions());
    row.eager.resize(graph.actions());
    for (int action = 0; action < graph.actions(); ++action) {
      const Action& what = graph.at(action);
      const Coord at = coord_at(run.grid, graph.rank_of(action));
      row.lasts.push_back(
          is_pass(what) ? all.at({step, at.data, at.pipeline, is_forward(what) ? 'F' : 'B'})[what.micro_batch]
                        : 0);
    }
  }
  return run;
}

/// What others found of a trace, in seconds.
struct Known {
  const char* name;
  double period, ideal, published, without_noise, equal_micro_batches, equal_ranks, equal_stages;
};
constexpr Known known[] = {
    {"ST", 2.008147, 1.705846, 1.179, 2.008791, 2.007787, 2.002566, 1.705778},
    {"SE", 8.816941, 5.741362, 1.537, 8.711645, 7.035529, 6.659782, 5.674293},
    {"AR", 45.491519, 22.989144, 1.973, 45.514666, 45.395845, 21.875463, 21.221161},
};

/// Times with every forward, and every backward, at its mean over all.
ReplayTimes at_means(const ReplayGraph& graph, ReplayTimes times) {
  std::map<ActionKind, std::pair<double, double>> sums;
  for (const ReplayRow& row : times.rows)
    for (int action = 0; action < graph.actions(); ++action) {
      auto& [sum, count] = sums[graph.at(action).kind];
      sum += static_cast<double>(row.lasts[action]);
      ++count;
    }
  for (ReplayRow& row : times.rows)
    for (int action = 0; action < graph.actions(); ++action)
      row.lasts[action] =
          std::llround(sums[graph.at(action).kind].first / sums[graph.at(action).kind].second);
  return times;
}

std::vector<std::string> accusations_of(const MadeRun& run, const ReplayTimes& times,
                                        const ReplayGraph& graph) {
  const StepTrace trace = trace_of(run, graph, times);
  const ReplayTimes measured = measured_times(trace, graph);
  const WorkModel model(graph, measured, run.paper);
  std::vector<std::string> said;
  for (const Cause& cause : causes_of(trace, graph, measured, model, run.paper, Counted::all))
    said.push_back(text_of(
        cause, graph, replay(graph, measured, static_cast<int>(trace.steps.size())).period(Counted::all)));
  return said;
}

TEST(Levels, AreThoseThatOthersMeasuredAndPublished) {
  for (const Known& expected : known) {
    ReplayTimes times;
    const MadeRun run = others_run(expected.name, times);
    const ReplayGraph graph(run.grid, run.plan.program);
    const int steps = static_cast<int>(times.rows.size());
    const auto levels = levels_of(graph, times, WorkModel(graph, times, run.paper), Counted::all);
    const auto near = [&](std::int64_t period, double seconds) {
      EXPECT_NEAR(static_cast<double>(period) * 1e-9 / seconds, 1, 0.001) << expected.name;
    };
    near(levels[0].period, expected.period);
    near(levels[1].period, expected.period);
    near(levels[2].period, expected.without_noise);
    near(levels[3].period, expected.equal_micro_batches);
    near(levels[4].period, expected.equal_ranks);
    near(levels[5].period, expected.equal_stages);
    const std::int64_t ideal = replay(graph, at_means(graph, times), steps).period(Counted::all);
    near(ideal, expected.ideal);
    EXPECT_NEAR(static_cast<double>(levels[0].period) / static_cast<double>(ideal) / expected.published, 1,
                0.02);
  }
}

TEST(Levels, AddUpToTheNanosecond) {
  std::mt19937_64 random(5);
  const MadeRun run = made_run({1, 2, 2, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  const ReplayTimes measured =
      measured_times(trace_of(run, graph, draw_times(run, graph, 8, {}, random)), graph);
  const auto levels = levels_of(graph, measured, WorkModel(graph, measured, run.paper));
  const std::int64_t costs =
      std::accumulate(levels.begin(), levels.end(), std::int64_t{0},
                      [](std::int64_t sum, const StepLevel& level) { return sum + level.costs; });
  EXPECT_EQ(costs, levels.front().period - levels.back().period);
  EXPECT_GT(levels.back().costs, 0) << "two stages have a bubble";
}

/// Levels of steps of which something takes so many times as long, beside what each cause adds to the ideal.
std::vector<StepLevel> compared_levels(const MadeRun& run,
                                       const std::function<double(const ReplayGraph&, int)>& longer) {
  std::mt19937_64 random(7);
  const ReplayGraph graph(run.grid, run.plan.program);
  const Fault fault{.longer = [&](int, int action) { return longer(graph, action); }};
  const ReplayTimes measured =
      measured_times(trace_of(run, graph, draw_times(run, graph, 8, fault, random)), graph);
  const WorkModel model(graph, measured, run.paper);
  std::vector<StepLevel> levels = levels_of(graph, measured, model);
  compare_with_ideal(levels, graph, measured, model, nullptr);
  return levels;
}

const StepLevel& level_of(const std::vector<StepLevel>& levels, const std::string& cause) {
  return *std::find_if(levels.begin(), levels.end(),
                       [&](const StepLevel& level) { return level.cause == cause; });
}

TEST(Levels, StandBesideWhatTheyAddToTheIdealWhereTheyAgree) {
  const auto levels = compared_levels(
      made_run({1, 2, 2, 1}, 8, ScheduleKind::one_forward_one_backward),
      [](const ReplayGraph& graph, int action) { return graph.rank_of(action) == 3 ? 1.5 : 1.0; });
  const StepLevel& slow = level_of(levels, "ranks slower than their peers");
  ASSERT_TRUE(slow.added);
  EXPECT_NEAR(static_cast<double>(*slow.added), static_cast<double>(slow.costs),
              0.15 * static_cast<double>(slow.costs));
  EXPECT_EQ(slow.interacts, "");
}

TEST(Levels, NameTheOtherCauseWhereOneHidesTheOther) {
  // A stage that computes longer costs little while all wait for messages that take longer still.
  const auto levels =
      compared_levels(made_run({1, 2, 2, 1}, 8, ScheduleKind::one_forward_one_backward),
                      [](const ReplayGraph& graph, int action) {
                        if (is_message(graph.at(action))) return 60.0;
                        return graph.stage_of(action) == 1 && is_pass(graph.at(action)) ? 1.6 : 1.0;
                      });
  const StepLevel& stages = level_of(levels, "unequal stages");
  EXPECT_LT(2 * stages.costs, *stages.added);
  EXPECT_EQ(stages.interacts, "messages between stages");
}

TEST(Levels, TellStateThatComesFromTheHostFromWork) {
  std::mt19937_64 random(6);
  const MadeRun run = made_run({1, 1, 2, 1}, 8, ScheduleKind::one_forward_one_backward, 1, true),
                without = made_run({1, 1, 2, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  const ReplayTimes measured =
      measured_times(trace_of(run, graph, draw_times(run, graph, 8, {}, random)), graph);
  const auto levels = levels_of(graph, measured, WorkModel(graph, measured, run.paper));
  const auto found = std::find_if(levels.begin(), levels.end(), [](const StepLevel& level) {
    return level.cause == "masters and moments on their way";
  });
  ASSERT_NE(found, levels.end());
  const std::int64_t longer = run.plan.expected.step - without.plan.expected.step;
  EXPECT_NEAR(static_cast<double>(found->costs), static_cast<double>(longer),
              0.05 * static_cast<double>(longer));
  EXPECT_GT(levels.back().costs, 0) << "two stages have a bubble";
}

TEST(Causes, AreTheRightOnesOfTheTracesOfOthers) {
  for (const Known& expected : known) {
    ReplayTimes times;
    const MadeRun run = others_run(expected.name, times);
    const ReplayGraph graph(run.grid, run.plan.program);
    const std::vector<std::string> said = accusations_of(run, times, graph);
    const std::string name = expected.name;
    ASSERT_FALSE(said.empty()) << name;
    if (name == "AR") {
      EXPECT_THAT(said[0], HasSubstr("rank 0 (stage 0, data 0, tensor 0) computes 2.3")) << said[0];
    } else if (name == "ST") {
      ASSERT_EQ(said.size(), 1u);
      EXPECT_THAT(said[0], HasSubstr("stage 3 computes"));
    } else {
      ASSERT_GE(said.size(), 2u);
      EXPECT_THAT(said[0], HasSubstr("micro-batches are unequal"));
      EXPECT_THAT(said[1], HasSubstr("stage 1 computes"));
      for (const std::string& sentence : said) EXPECT_THAT(sentence, testing::Not(HasSubstr("peers")));
    }
  }
}

}  // namespace
}  // namespace mindpipe
