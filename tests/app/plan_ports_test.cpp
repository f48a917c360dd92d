#include "app/plan/plan_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "app/plan/grid_choice.h"
#include "app/plan/open_choice.h"
#include "app/plan_text.h"
#include "config/config.h"

namespace mindpipe {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Config config_with(const std::string& name, const std::vector<std::string>& overrides) {
  return read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml", overrides);
}

PortCosts costs_of_128_ms() {
  PortCosts costs{.time = 128'000'000};
  costs.pairs = {{TrafficClass::pipeline, TrafficClass::gradients, 9'000'000, 3'100'000},
                 {TrafficClass::gradients, TrafficClass::tensor, 1'000'000, 640'000},
                 {TrafficClass::gradients, TrafficClass::pipeline, 8'000'000, 630'000},
                 {TrafficClass::pipeline, TrafficClass::tensor, 4'000'000, -5'000'000}};
  return costs;
}

TEST(PlanPorts, HaveASentenceForEachPairThatCostsHalfAPercent) {
  const Config tiny = on_paper(config_with("gpt-tiny", {"grid.pipeline=2"}), 2);
  PortChanges changes(tiny);
  EXPECT_EQ(ports_text(tiny, costs_of_128_ms()),
            "sums of gradients (data) hold up messages of the pipeline: 3.1 ms of a step of 128.0 ms\n"
            "sums inside passes (tensor) hold up sums of gradients (data): 640.0 us of a step of 128.0 ms\n");
  EXPECT_THAT(ports_text(tiny, costs_of_128_ms(), &changes), HasSubstr("of a step of 128.0 ms; "));
  EXPECT_EQ(ports_text(tiny, PortCosts{.time = 1000}, &changes), "");
}

/// A file with settings, as it is planned for four ranks.
struct PlannedFile {
  static constexpr int ranks = 4;
  std::vector<std::string> settings;
  WrittenKeys written;
  Config given, config;

  explicit PlannedFile(std::vector<std::string> with)
      : settings(std::move(with)),
        given(read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt-tiny.yaml", settings, written)),
        config(on_paper(given, ranks, written.open)) {}

  std::int64_t step() const { return make_run_plan(config).training.expected.step; }
  /// The change that the plan recommends.
  PortChange change() const {
    const PortCosts costs = port_costs_of(make_run_plan(config), config);
    PortChanges changes(config, open_settings(given, written.open, ranks));
    for (const PairCost& pair : costs.dear()) changes.simulate_for(pair.holds);
    return changes.best(costs.time).value_or(PortChange{});
  }
  /// How long a step takes with the words of a change beside the settings of the file.
  std::int64_t step_with(const PortChange& change) const {
    std::vector<std::string> changed = settings;
    std::istringstream each(change.words);
    for (std::string word; each >> word;) {
      if (word.find('=') != std::string::npos) changed.push_back(word);
      else changed.back() += " " + word;
    }
    return PlannedFile(changed).step();
  }
};

std::vector<std::string> with_open_tapes(const std::string& kind, const std::string& limit) {
  return {"train.batch=16",        "train.micro_batch=2",         "grid.pipeline=2",
          "grid.data=2",           "schedule.chunks=2",           "device.links.rate=1e8",
          "device.threads=1",      "device.description=core",     "train.recompute=auto",
          "schedule.kind=" + kind, "memory.device_limit=" + limit};
}

TEST(PlanPorts, AChangeTakesWhatItSaysWhereTapesAreOpen) {
  const PlannedFile file(with_open_tapes("elastic", "15.5MiB"));
  const PortChange change = file.change();
  EXPECT_EQ(file.step_with(change), change.time) << change.words;
  EXPECT_THAT(change.words, Not(HasSubstr("groups")));
  // Each schedule has blocks of its own computed again.
  EXPECT_LE(change.time, PlannedFile(with_open_tapes("dualpipe-v", "15.5MiB")).step());
}

TEST(PlanPorts, AChangeNamesWhatIsOpenAndIsNotChosenAnew) {
  std::vector<std::string> settings = with_open_tapes("interleaved", "0");
  settings[8] = "train.zero=auto";
  const PlannedFile file(settings);
  const PortChange change = file.change();
  EXPECT_EQ(file.step_with(change), change.time) << change.words;
  EXPECT_THAT(change.words, HasSubstr("train.zero="));
}

TEST(PlanPorts, HaveAllPairsInJson) {
  const auto json = nlohmann::json::parse(ports_json(costs_of_128_ms()));
  EXPECT_EQ(json["time_ns"], 128'000'000);
  EXPECT_EQ(json["pairs"].size(), 4u);
  EXPECT_EQ(json["pairs"][0]["waits"], "pipeline");
  EXPECT_EQ(json["pairs"][0]["holds"], "gradients");
  EXPECT_EQ(json["pairs"][0]["waited_ns"], 9'000'000);
  EXPECT_EQ(json["pairs"][3]["cost_ns"], -5'000'000);
  EXPECT_EQ(nlohmann::json::parse(ports_json({}))["pairs"].size(), 0u);
}

TEST(PlanPorts, SayNothingWhereNobodyIsHeldUp) {
  EXPECT_THAT(plan_text(config_with("gpt-tiny", {"grid.pipeline=2"}), 2, true), Not(HasSubstr("hold up")));
}

TEST(PlanPorts, SayWhoseGradientsAreSummed) {
  const auto text = [](const std::string& name, std::vector<std::string> settings) {
    settings.emplace_back("device.description=core");
    return plan_text(config_with(name, settings), 4, true);
  };
  const std::string shared = "sums of gradients (shared units) hold up messages of the pipeline";
  const std::string of_table =
      text("bert-tiny", {"grid.pipeline=2", "grid.tensor=2", "schedule.kind=elastic", "schedule.chunks=2",
                         "device.links.ranks_per_node=2", "device.links.rate_between_nodes=3e7"});
  EXPECT_THAT(of_table, HasSubstr(shared));
  EXPECT_THAT(of_table, Not(HasSubstr("(data")));
  EXPECT_THAT(text("gpt-tiny", {"grid.pipeline=2", "grid.data=2", "train.batch=32", "train.micro_batch=2",
                                "schedule.kind=interleaved", "schedule.chunks=2", "device.links.rate=1e8"}),
              ContainsRegex("sums of gradients .data(, shared units)?. hold up messages of the pipeline"));
}

TEST(PlanPorts, ASimulatedPlanSaysWhichGroupsItTook) {
  const auto text = [](const std::string& groups) {
    return plan_text(config_with("gpt-tiny", {"grid.pipeline=2", "schedule.kind=elastic", "schedule.chunks=2",
                                              "train.batch=16", "train.micro_batch=2", groups}),
                     2, true);
  };
  EXPECT_THAT(text("schedule.groups.backward=[2, 6]"), HasSubstr("backwards [2, 6]\n"));
  EXPECT_THAT(
      text("schedule.groups.backward=auto"),
      ContainsRegex("groups of micro-batches .schedule.groups.: forwards .[2468, ]+. .auto., backwards "
                    ".[2468, ]+. .auto.\n"));
  const PlannedFile searched(with_open_tapes("elastic", "17.5MiB"));
  EXPECT_THAT(plan_text(searched.given, PlannedFile::ranks, true, searched.written.open),
              HasSubstr("forwards [2, 2] (auto), backwards [2, 2] (auto)\n"));
}

/// Groups are chosen with the blocks that are computed again.
TEST(PlanPorts, AnElasticStepIsNoLongerWithMoreMemory) {
  EXPECT_LE(PlannedFile(with_open_tapes("elastic", "16.5MiB")).step(),
            PlannedFile(with_open_tapes("elastic", "15.5MiB")).step());
}

TEST(PlanPorts, GroupsThatAreWrittenLeaveASearchTheSchedulesThatHaveGroups) {
  std::vector<std::string> settings = with_open_tapes("auto", "0");
  for (const char* groups : {"forward", "backward"})
    settings.push_back(fmt::format("schedule.groups.{}=[2, 2]", groups));
  const PlannedFile file(settings);
  EXPECT_EQ(file.config.schedule.kind, ScheduleKind::elastic);
  EXPECT_EQ(file.config.schedule.groups.forward, (std::vector{2, 2}));
}

}  // namespace
}  // namespace mindpipe
