#include "app/plan/plan_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/plan/grid_choice.h"
#include "app/plan/plan.h"
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
  EXPECT_EQ(ports_text(tiny, costs_of_128_ms(), false),
            "sums of gradients (data) hold up messages of the pipeline: 3.1 ms of a step of 128.0 ms\n"
            "sums inside passes (tensor) hold up sums of gradients (data): 640.0 us of a step of 128.0 ms\n");
  EXPECT_THAT(ports_text(tiny, costs_of_128_ms(), true), HasSubstr("of a step of 128.0 ms; "));
  EXPECT_EQ(ports_text(tiny, PortCosts{.time = 1000}, true), "");
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
}

}  // namespace
}  // namespace mindpipe
