#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "config/open_settings.h"
#include "plan/searched_settings.h"

// The table of settings that a search may choose.
namespace mindpipe {
namespace {

using ::testing::Each;
using ::testing::Not;
using ::testing::StartsWith;

Config tiny(const std::string& name, const std::vector<std::string>& settings) {
  return read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml", settings);
}

/// Free to choose all settings that trainings of one kind have.
SearchFreedom all_of(bool subnets) {
  SearchFreedom free;
  for (const SearchedSetting& setting : searched_settings())
    free.*setting.free = subnets ? setting.of_subnets : setting.of_steps;
  return free;
}

TEST(SearchedSettings, SayAllOfALayout) {
  const Config config = tiny("gpt-tiny", {"model.layers=6", "train.batch=16", "grid.pipeline=2"});
  LayoutChoice layout = layout_of(config);
  layout.grid = {2, 2, 2, 1};
  layout.schedule = ScheduleKind::interleaved;
  layout.chunks = 2;
  layout.cuts = {1, 3, 5};
  layout.zero = 1;
  layout.recompute = ChosenBlocks(std::vector{2});
  layout.swap = ChosenBlocks(std::vector{3});
  layout.sequence_parallel = true;
  layout.micro_batch = 2;
  EXPECT_EQ(layout_of(with_settings(config, settings_with(layout, all_of(false)))), layout);
}

TEST(SearchedSettings, SayAllOfALayoutOfSubnets) {
  const Config config = tiny("supernet-text", {});
  LayoutChoice layout = layout_of(config);
  layout.grid.pipeline = 2;
  layout.grid.supernet = 2;
  layout.grid.data = 1;
  layout.grid.tensor = 1;
  layout.subnet_cuts = SubnetCuts::own;
  EXPECT_EQ(layout_of(with_settings(config, settings_with(layout, all_of(true)))), layout);
}

TEST(SearchedSettings, LeaveOutWhatOtherLayoutsHaveNot) {
  const LayoutChoice plain = layout_of(tiny("gpt-tiny", {}));
  EXPECT_THAT(settings_with(plain, all_of(false)),
              Each(Not(::testing::AnyOf(StartsWith("schedule.chunks"), StartsWith("schedule.cuts"),
                                        StartsWith("train.zero"), StartsWith("train.sequence_parallel")))));
}

}  // namespace
}  // namespace mindpipe
