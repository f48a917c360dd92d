#include "trace/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "program/make_program.h"
#include "program/sample_outline.h"
#include "trace/sound_tracks.h"
#include "trace/tracks.h"

namespace mindpipe {
namespace {

using Json = nlohmann::json;

/// A list that is run again, as a rank has kept it. `times`: of each action of each run.
std::vector<KeptAction> kept(const std::vector<Action>& list,
                             const std::vector<std::vector<Recorder::Times>>& times,
                             std::int64_t first_step) {
  std::vector<KeptAction> actions;
  for (std::size_t run = 0; run < times.size(); ++run)
    for (std::size_t i = 0; i < list.size(); ++i)
      actions.push_back({.action = list[i],
                         .times = times[run][i],
                         .bytes = list[i].bytes,
                         .step = first_step + static_cast<std::int64_t>(run),
                         .number = static_cast<int>(i)});
  return actions;
}

/// Two steps of a pipeline, timed by the simulator, as they would come from ranks of another clock.
struct Traced {
  static constexpr std::int64_t zero = 5'000'000'000;
  PlannedStep plan;
  std::vector<TracedRank> ranks;
  Json file;

  explicit Traced(const Outline& outline, const std::string& schedule)
      : plan(make_program(outline, schedule, {{100, 0}, {}, {}, {}})) {
    for (int rank = 0; rank < outline.stages; ++rank) {
      std::vector<std::vector<Recorder::Times>> steps(2);
      for (int step = 0; step < 2; ++step)
        for (const Span& span : plan.expected.spans[rank])
          steps[step].push_back(
              {zero + step * plan.expected.step + span.start, zero + step * plan.expected.step + span.end});
      ranks.push_back({.rank = 10 + rank,
                       .name = "rank " + std::to_string(10 + rank),
                       .place = rank,
                       .actions = kept(plan.program.ranks[rank], steps, 7),
                       .units = std::vector<std::string>(outline.units.size(), "unit")});
    }
    write();
  }
  void write() {
    std::string text = chrome_begin("cpu");
    for (const TracedRank& rank : ranks)
      text += (&rank == &ranks.front() ? "" : ",\n") + chrome_events(rank, zero);
    file = Json::parse(text + chrome_end);
  }
  /// What a rank's list did in a step.
  std::span<KeptAction> of_step(int rank, int step) {
    const std::size_t length = plan.program.ranks[rank].size();
    return std::span(ranks[rank].actions).subspan(step * length, length);
  }
  std::vector<Json> events(const std::string& phase) const {
    std::vector<Json> found;
    for (const Json& event : file["traceEvents"])
      if (event["ph"] == phase) found.push_back(event);
    return found;
  }
};

TEST(ChromeTrace, EveryActionOfEveryStepIsOneCompleteEvent) {
  const Traced traced(with_everything(equal_stages(3, 6)), "1f1b");
  std::map<std::tuple<int, int, int>, Json> found;  // by rank, step, action
  for (const Json& event : traced.events("X")) {
    const Json& args = event["args"];
    ASSERT_TRUE(
        found
            .emplace(std::tuple(event["pid"].get<int>(), args["step"].get<int>(), args["action"].get<int>()),
                     event)
            .second)
        << event;
  }
  std::size_t actions = 0;
  for (int rank = 0; rank < 3; ++rank)
    for (int step = 0; step < 2; ++step)
      for (std::size_t i = 0; i < traced.plan.program.ranks[rank].size(); ++i, ++actions) {
        const auto at = found.find({10 + rank, 7 + step, static_cast<int>(i)});
        ASSERT_NE(at, found.end());
        const Action& action = traced.plan.program.ranks[rank][i];
        const Span& span = traced.plan.expected.spans[rank][i];
        const Json& event = at->second;
        EXPECT_EQ(event["cat"], name_of(action.kind));
        EXPECT_NEAR(event["ts"].get<double>(), (step * traced.plan.expected.step + span.start) * 1e-3, 1e-6);
        EXPECT_NEAR(event["dur"].get<double>(), (span.end - span.start) * 1e-3, 1e-6);
        if (action.micro_batch >= 0) {
          EXPECT_EQ(event["args"]["micro_batch"], action.micro_batch);
        }
        if (action.bytes > 0) {
          EXPECT_EQ(event["args"]["bytes"], action.bytes);
        }
      }
  EXPECT_EQ(found.size(), actions);
}

TEST(ChromeTrace, QueuesAreThreadsWithNamesAndTheirEventsFollowEachOther) {
  const Traced traced(equal_stages(2, 4), "1f1b");
  std::map<std::pair<int, int>, std::string> names;
  for (const Json& event : traced.events("M"))
    if (event["name"] == "thread_name") names[{event["pid"], event["tid"]}] = event["args"]["name"];
  EXPECT_EQ((names.at({10, 0})), "compute");
  EXPECT_EQ((names.at({11, 0})), "compute");
  std::set<std::string> all;
  for (const auto& [thread, name] : names) all.insert(name);
  EXPECT_TRUE(all.count("activation to stage 1") && all.count("gradient from stage 1") &&
              all.count("activation from stage 0"))
      << traced.file.dump(1).substr(0, 2000);
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
  for (const Json& event : traced.events("X")) {
    EXPECT_TRUE(names.count({event["pid"], event["tid"]})) << event;
    spans[{event["pid"], event["tid"]}].emplace_back(event["ts"],
                                                     event["ts"].get<double>() + event["dur"].get<double>());
  }
  for (auto& [thread, of_queue] : spans) {
    std::sort(of_queue.begin(), of_queue.end());
    for (std::size_t i = 1; i < of_queue.size(); ++i)
      EXPECT_LE(of_queue[i - 1].second, of_queue[i].first + 1e-6) << names.at(thread);
  }
}

TEST(ChromeTrace, PartsThatTravelAtATimeHaveTracksOfTheirOwn) {
  Traced traced(with_everything(equal_stages(2, 4)), "1f1b");
  // Each sum and gather begins while the one before it travels, as an executor begins them.
  for (int rank = 0; rank < 2; ++rank)
    for (int step = 0; step < 2; ++step) {
      Recorder::Times* before = nullptr;
      for (auto& [action, times, bytes, of_step, number, place, units, shared] : traced.of_step(rank, step)) {
        if (!is_collective(action) || action.kind == ActionKind::sum_scalar) continue;
        times.start = before == nullptr ? times.start - 40 : before->start + 20;
        times.end = times.start + 30;
        before = &times;
      }
    }
  traced.write();
  expect_sound_tracks(traced.file);
  std::map<std::string, int> names;
  for (const Json& event : traced.events("M"))
    if (event["name"] == "thread_name") ++names[event["args"]["name"]];
  EXPECT_EQ(names["data group"], 2) << "one of each rank";
  EXPECT_EQ(names["data group, lane 2"], 2);
  EXPECT_EQ(names["data group, lane 3"], 0);
}

TEST(ChromeTrace, AnActionOfASubnetNamesIt) {
  PlannedStep plan = make_program(equal_stages(1, 1), "1f1b");
  plan.program.ranks[0][0].owner = {Owner::subnet, 7};
  const std::vector<Action>& list = plan.program.ranks[0];
  const TracedRank rank{.name = "rank 0",
                        .actions = kept(list, {std::vector<Recorder::Times>(list.size(), {1, 2})}, 1),
                        .units = std::vector<std::string>(8, "unit")};
  int named = 0;
  for (const Json& event : Json::parse("[" + chrome_events(rank, 0) + "]"))
    if (event["ph"] == "X" && event["args"].contains("subnet")) {
      EXPECT_EQ(event["args"]["subnet"], 7);
      EXPECT_EQ(event["args"]["action"], 0);
      ++named;
    }
  EXPECT_EQ(named, 1);
}

TEST(Lanes, AreTheLowestThatAreFree) {
  using Times = std::vector<Recorder::Times>;
  EXPECT_EQ(lanes_of({}), std::vector<int>{});
  EXPECT_EQ(lanes_of(Times{{1, 5}, {5, 9}, {9, 9}, {9, 12}}), (std::vector<int>{0, 0, 0, 0}))
      << "one after the other";
  EXPECT_EQ(lanes_of(Times{{1, 9}, {2, 4}, {4, 12}, {9, 10}}), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(lanes_of(Times{{8, 12}, {1, 9}, {2, 10}}), (std::vector<int>{2, 0, 1}))
      << "in the order of their starts";
  EXPECT_EQ(lanes_of(Times{{1, 9}, {5, 0}, {9, 10}}), (std::vector<int>{0, 0, 0}))
      << "what never ended is not drawn";
}

TEST(ChromeTrace, TensorSumsHaveATrackOfTheirOwn) {
  const PlannedStep plan = make_program(equal_stages(1, 1), "1f1b");
  const std::vector<Action>& list = plan.program.ranks[0];
  TracedRank rank{
      .rank = 7, .name = "rank 7", .actions = kept(list, {std::vector<Recorder::Times>(list.size())}, 4)};
  const Json without = Json::parse("[" + chrome_events(rank, 1000) + "]");
  for (const Json& event : without) EXPECT_NE(event["args"].value("name", ""), "tensor");
  rank.sums = {{{"sum", 1500, 3500, 64}, 4}, {{"gather", 5000, 5001, 32}, 4}};
  std::vector<Json> sums;
  int track = -1;
  for (const Json& event : Json::parse("[" + chrome_events(rank, 1000) + "]")) {
    if (event["name"] == "thread_name" && event["args"]["name"] == "tensor") track = event["tid"];
    if (event.value("cat", "") == "tensor") sums.push_back(event);
  }
  EXPECT_EQ(track, 2) << "behind the compute queue and that of the sums over data";
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0], Json::parse(R"({"ph": "X", "name": "sum", "cat": "tensor", "pid": 7, )"
                                 R"("tid": 2, "ts": 0.5, "dur": 2.0, "args": {"step": 4, "bytes": 64}})"));
  EXPECT_EQ(sums[1]["name"], "gather");
  EXPECT_EQ(sums[1]["dur"], 0.001);
}

TEST(ChromeTrace, EveryMessageIsAnArrowFromItsSendToItsReceive) {
  for (const std::string schedule : {"1f1b", "zb-h1", "breadth-first"}) {
    const Traced traced(with_everything(equal_stages_for(schedule, 3, 6)), schedule);
    std::size_t sends = 0;
    for (const auto& list : traced.plan.program.ranks)
      for (const Action& action : list) sends += action.kind == ActionKind::send;
    std::map<std::string, Json> tails;
    for (const Json& event : traced.events("s"))
      ASSERT_TRUE(tails.emplace(event["id"], event).second) << event;
    EXPECT_EQ(tails.size(), 2 * sends) << schedule;
    std::set<std::string> heads;
    for (const Json& head : traced.events("f")) {
      ASSERT_TRUE(heads.insert(head["id"]).second) << head;
      const auto tail = tails.find(head["id"]);
      ASSERT_NE(tail, tails.end()) << head;
      EXPECT_NE(tail->second["pid"], head["pid"]);
      EXPECT_EQ(tail->second["name"], head["name"]);
      EXPECT_LE(tail->second["ts"].get<double>(), head["ts"].get<double>());
      EXPECT_EQ(head["bp"], "e");
    }
    EXPECT_EQ(heads.size(), tails.size());
    expect_sound_tracks(traced.file);
  }
}

TEST(ChromeTrace, AnActionThatNeverRanIsLeftOut) {
  Traced traced(equal_stages(2, 2), "1f1b");
  const std::size_t before = traced.events("X").size(), arrows = traced.events("f").size();
  int send = 0;
  while (traced.plan.program.ranks[0][send].kind != ActionKind::send) ++send;
  traced.of_step(0, 1)[send].times = {};
  traced.write();
  EXPECT_EQ(traced.events("X").size(), before - 1);
  EXPECT_EQ(traced.events("s").size(), arrows - 1);
  std::set<std::string> begun;
  for (const Json& tail : traced.events("s")) begun.insert(tail["id"]);
  std::size_t ends = 0;
  for (const Json& head : traced.events("f")) ends += begun.count(head["id"]);
  EXPECT_EQ(ends, arrows - 1) << "all others end where they did";
}

}  // namespace
}  // namespace mindpipe
