// thorough
#include "app/plan/plan_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "app/plan/grid_choice.h"
#include "app/plan_text.h"
#include "plan/memory_limits.h"

// What a plan says of lanes, of cuts of subnets' own and of what moves for them is what plans of the layouts
// that it speaks of say.
namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::Not;

using Settings = std::vector<std::string>;

Settings operator+(Settings all, const Settings& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Config supernet(const std::string& name, const Settings& settings) {
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);  // from which files name their spaces
  return read_config("configs/" + name + ".yaml", settings);
}
Config large(const Settings& settings) {
  return supernet("supernet-nlp-c3",
                  Settings{"grid.data=1", "supernet.window=64", "device.links.ranks_per_node=32"} + settings);
}

/// The number in a text where a regular expression has its parenthesis.
double number_in(const std::string& text, const std::string& where) {
  std::smatch found;
  if (std::regex_search(text, found, std::regex(where))) return std::stod(found[1]);
  ADD_FAILURE() << where << " is not in\n" << text;
  return 0;
}

/// A plan, and what its text says of moves.
struct Planned {
  Planned(const Config& given, int ranks)
      : config(on_paper(given, ranks)), plan(make_run_plan(config)), moves(moves_text(config, plan)) {}
  double over_one_stage() const { return plan.subnets->paper.speed_up(); }

  Config config;
  RunPlan plan;
  MovesText moves;
};

MovesText moves_of(const Config& config, int ranks) { return Planned(config, ranks).moves; }

/// Prices of candidates, all the same but for attention, and a move so many forwards.
std::string prices(double attention, double move) {
  const std::string path = testing::TempDir() + "prices_of_plans.yaml";
  std::ofstream(path) << fmt::format(
      "unit: 333 us\nbackward: 2\nupdate: 0.01\nembedding: 0.01\nbridge: 0.01\nhead: 0.01\nmove: {}\n"
      "candidates: {{conv: 1, separable: 1, light: 1, attention: {}, cross: {}, glu: 1, identity: 1}}\n",
      move, attention, attention);
  return path;
}

TEST(PlanLanes, SaysHowFastLanesAreBesideOneOfThemAlone) {
  const Settings links{"device.links.rate=350e9", "supernet.prices=" + prices(1, 1.5)};
  struct Case {
    const char* sampler;
    int micro_batch;
    bool is_slower;
  };
  for (const Case& c : {Case{"uniform", 48, true}, {"permutation", 48, false}, {"spaced", 12, false}}) {
    const Settings settings = links + Settings{fmt::format("supernet.sampler={}", c.sampler),
                                               fmt::format("train.micro_batch={}", c.micro_batch)};
    const Planned two(large(settings + Settings{"grid.supernet=2", "grid.pipeline=8"}), 16),
        one(large(settings + Settings{"grid.pipeline=8"}), 8);
    const double told =
        number_in(two.moves.text, "2 lanes are ([0-9.]+) times as fast on paper as one of them alone");
    EXPECT_NEAR(told, two.over_one_stage() / one.over_one_stage(), 0.01) << c.sampler;
    EXPECT_EQ(told < 1, c.is_slower) << c.sampler << ": " << told;
    EXPECT_EQ(two.moves.is_warning, c.is_slower) << c.sampler;
    EXPECT_EQ(one.moves.text, "");
  }
}

TEST(PlanLanes, ThePlansTextHasItsSpeedAndWhatMovesCost) {
  const Config two = supernet("supernet-tiny", {"grid.supernet=2", "grid.pipeline=2"}),
               one = supernet("supernet-tiny", {"grid.pipeline=4"});
  const std::string text = plan_text(two, 4, false);
  const Planned planned(two, 4);
  EXPECT_THAT(planned.moves.text, HasSubstr("moves:"));
  EXPECT_THAT(text, HasSubstr(planned.moves.text));
  EXPECT_NEAR(number_in(text, "s/s, ([0-9.]+) times as fast as one stage\n"), planned.over_one_stage(),
              0.005);
  EXPECT_THAT(plan_text(one, 4, false), Not(HasSubstr("moves:")));
}

TEST(PlanLanes, NamesABatchThatHidesMoves) {
  for (const Settings& slow :
       {Settings{"device.links.rate=30e9"}, Settings{"device.links.rate=2.5e9", "supernet.prices=h200"}}) {
    const Settings settings = slow + Settings{"grid.supernet=2", "grid.pipeline=4"};
    const MovesText shown = moves_of(large(settings), 8);
    EXPECT_TRUE(shown.is_warning);
    EXPECT_GT(number_in(shown.text, "on paper that costs ([0-9.]+) % of the time: passes do not hide it"), 2);
    const int batch = static_cast<int>(number_in(shown.text, "; train.batch=([0-9]+) would"));
    const MovesText hidden = moves_of(large(settings + Settings{fmt::format("train.batch={}", batch)}), 8);
    EXPECT_THAT(hidden.text, HasSubstr("of the time: passes hide it\n"));
    EXPECT_FALSE(hidden.is_warning);
  }
}

TEST(PlanLanes, SaysWhenNoBatchHidesMoves) {
  const MovesText shown = moves_of(large({"device.links.rate=5e9", "grid.supernet=2", "grid.pipeline=4"}), 8);
  EXPECT_THAT(
      shown.text,
      HasSubstr("nor would they with a batch of 384; take fewer lanes, supernet.cuts=home, or faster links"));
  EXPECT_TRUE(shown.is_warning);
}

TEST(PlanLanes, WarnsOfOwnCutsWhoseMovesAreSlow) {
  for (const double move : {0.5, 60.0}) {
    const Settings settings{"supernet.prices=" + prices(5, move), "grid.pipeline=8"};
    const Planned own(large(settings + Settings{"supernet.cuts=own"}), 8), one_cut(large(settings), 8);
    EXPECT_NEAR(number_in(own.moves.text, "cuts of subnets' own are ([0-9.]+) times as fast"),
                own.over_one_stage() / one_cut.over_one_stage(), 0.01);
    EXPECT_EQ(own.moves.is_warning, move > 1) << own.moves.text;
  }
}

TEST(PlanLanes, TakesNoLayoutThatDoesNotFit) {
  const Settings ample{"grid.pipeline=4"},
      tight{"grid.supernet=4", "grid.pipeline=1", "memory.device_limit=26000000"};
  const std::string all = plan_text(supernet("supernet-tiny", ample), 4, true);
  EXPECT_THAT(all, HasSubstr("take grid.supernet=1 grid.pipeline=4 supernet.cuts=own: 5 % faster"));
  EXPECT_THAT(all, Not(HasSubstr("too much")));
  const std::string text = plan_text(supernet("supernet-tiny", tight), 4, true);
  EXPECT_THAT(text, HasSubstr(", too much\n"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("\ntake (\\S+) (\\S+) (\\S+): "))) << text;
  const Config taken = on_paper(supernet("supernet-tiny", tight + Settings{found[1], found[2], found[3]}), 4);
  EXPECT_NO_THROW(require_fit(make_run_plan(taken), taken.memory.device_limit)) << text;
}

TEST(PlanLanes, NamesLayoutsThatARunWouldRefuse) {
  EXPECT_THAT(plan_text(supernet("supernet-tiny", {"grid.pipeline=6"}), 6, true),
              HasSubstr("\nrefused: 1 x 6, own cuts\n"));
}

}  // namespace
}  // namespace mindpipe
