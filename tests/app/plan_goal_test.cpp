#include "app/plan/plan_goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/plan/open_choice.h"
#include "app/plan/plan_comparison.h"
#include "app/plan/plan_page.h"
#include "app/plan/plan_search.h"
#include "core/check.h"
#include "core/text.h"
#include "plan/searched_settings.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// A small decoder on devices that are worth many of it.
struct Small {
  WrittenKeys written;
  Config config;
  SearchFreedom free;
  explicit Small(std::vector<std::string> settings = {}) {
    const std::vector<std::string> base{"device.kind=cuda", "grid=auto", "train.batch=64",
                                        "train.micro_batch=4", "model.context=256"};
    settings.insert(settings.begin(), base.begin(), base.end());
    config = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt2-124m.yaml", settings, written);
    free = freedom_of(config, written);
    free.recompute = free.sequence_parallel = free.chunks = free.schedule = free.cuts = false;
  }
};

std::string refusal(const std::vector<std::string>& settings) {
  try {
    PlanGoal(Small(settings).config);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PlanGoal, RefusesWhatItCannotKnow) {
  const std::string intensity = "energy.carbon_intensity=300", source = "energy.source=a table";
  EXPECT_THAT(refusal({"plan.objective=carbon"}), HasSubstr("energy.carbon_intensity is 0"));
  EXPECT_EQ(refusal({"plan.objective=carbon", intensity, source}), "accepted");
  EXPECT_THAT(refusal({"plan.objective=cost"}), HasSubstr("nothing has a price"));
  EXPECT_THAT(refusal({"plan.objective=cost", "plan.co2_kg=0.1"}), HasSubstr("no CO2 is known"));
  EXPECT_EQ(refusal({"plan.objective=cost", "plan.kwh=0.3"}), "accepted");
  EXPECT_THAT(refusal({"plan.batches=[64,128]"}), HasSubstr("set plan.noise_scale"));
  EXPECT_EQ(refusal({"plan.batches=[64,128]", "plan.noise_scale=500"}), "accepted");
  EXPECT_THAT(refusal({"plan.noise_scale=-3"}), HasSubstr("is no number of samples"));
  EXPECT_THAT(refusal({"plan.noise_scale=no/such/run"}),
              HasSubstr("no/such/run/metrics.jsonl cannot be read"));
}

TEST(PlanGoal, TakesTheNoiseScaleThatARunHasMeasuredLast) {
  const std::string run = testing::TempDir() + "plan_goal";
  std::filesystem::create_directories(run);
  std::ofstream(run + "/metrics.jsonl") << "{\"step\": 1}\n{\"step\": 2, \"noise_scale\": 300.5}\n"
                                           "{\"step\": 3, \"noise_scale\": 400.5}\n{\"step\": 4}\n";
  EXPECT_EQ(PlanGoal(Small({"plan.noise_scale=" + run}).config).noise_scale(), 400.5);
  EXPECT_EQ(PlanGoal(Small({"plan.noise_scale=auto", "run.dir=" + run}).config).noise_scale(), 400.5);
  std::ofstream(run + "/metrics.jsonl") << "{\"step\": 1}\n";
  EXPECT_THAT(refusal({"plan.noise_scale=" + run}), HasSubstr("has no noise_scale"));
  std::filesystem::remove_all(run);
}

PlanSize on(int ranks) { return {ranks, 64, 1}; }

/// All layouts are simulated, so that the search has nothing to leave out.
double least_joules(const Small& small, const PlanGoal& goal, int ranks, LayoutSearch search) {
  double least = 1e300;
  for (LayoutCandidate& one : search.all) {
    if (one.fate == LayoutCandidate::Fate::slower) simulate_layout(small.config, one);
    if (one.fate != LayoutCandidate::Fate::simulated) continue;
    EXPECT_LE(one.least_work, one.work) << words_of(one.layout, small.free);
    EXPECT_LE(one.least_cost(goal.price(on(ranks))), one.cost(goal.price(on(ranks))));
    least = std::min(least, goal.joules(one, on(ranks)));
  }
  return least;
}

TEST(PlanGoal, TheLeastEnergyIsThatOfTheWholeSpace) {
  const Small small({"plan.objective=energy"});
  const PlanGoal goal(small.config);
  for (const int ranks : {4, 8}) {
    const LayoutSearch search = search_layouts(small.config, ranks, small.free, 1, goal.price(on(ranks)));
    const double found = goal.joules(search.all[search.best.front()], on(ranks));
    EXPECT_LE(found, 1.001 * least_joules(small, goal, ranks, search));
  }
}

/// The batch of the least time for what it is worth, where a step takes so long and each sample adds so much.
TEST(PlanGoal, TheBestBatchIsTheRootOfNoiseScaleTimesFixedOverAddedTime) {
  const std::vector<int> batches{16, 32, 64, 128, 256, 512, 1024};
  std::vector<int> chosen;
  for (const double noise_scale : {30.0, 300.0, 3000.0}) {
    const Small small(
        {"plan.batches=[" + joined(batches) + "]", fmt::format("plan.noise_scale={}", noise_scale)});
    const PlanGoal goal(small.config);
    const auto plans = compare_plans(small.config, 4, 0, goal, small.free, 1);
    const int best = best_plan(plans, goal);
    ASSERT_GE(best, 0);
    const auto seconds = [&](int place) { return static_cast<double>(plans[place].best().step); };
    const int last = static_cast<int>(batches.size()) - 1;
    const double each = (seconds(last) - seconds(last - 2)) / (batches[last] - batches[last - 2]),
                 fixed = seconds(last) - each * batches[last];
    ASSERT_GT(fixed, 0);
    const double root = std::sqrt(noise_scale * fixed / each);
    EXPECT_LE(std::abs(std::log2(plans[best].size.batch / root)), 1.5) << noise_scale << ": " << root;
    chosen.push_back(plans[best].size.batch);
  }
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  EXPECT_LT(chosen.front(), chosen.back()) << "more noise asks for a larger batch";
}

TEST(PlanGoal, ADearerKilogramOfCarbonTakesFewerRanksAndBothPlansAreTold) {
  const auto told = [&](std::vector<std::string> settings) {
    for (const char* always :
         {"energy.carbon_intensity=400", "energy.source=a table", "plan.noise_scale=1e9"})
      settings.emplace_back(always);
    const Small small(settings);
    const PlanGoal goal(small.config);
    const auto plans = compare_plans(small.config, 1, 32, goal, small.free, 1);
    EXPECT_EQ(plans.size(), 6u);
    return std::pair(plans[best_plan(plans, goal)].size.ranks,
                     comparison_text(plans, goal, small.free, small.config.train.batch));
  };
  const std::string cost = "plan.objective=cost", hour = "plan.rank_hour=2", power = "plan.kwh=0.2";
  const auto fast = told({}), green = told({"plan.objective=carbon"}),
             cheap = told({cost, hour, power, "plan.co2_kg=0.1"}),
             dear = told({cost, hour, power, "plan.co2_kg=1e6"});
  EXPECT_LT(green.first, fast.first);
  EXPECT_LE(dear.first, cheap.first);
  EXPECT_EQ(dear.first, green.first) << "where carbon is all that counts";
  EXPECT_EQ(std::count(green.second.begin(), green.second.end(), '\n'), 9) << green.second;
  EXPECT_THAT(green.second,
              testing::ContainsRegex("energy +CO2e  \\(each for a sample that a step is worth"));
  EXPECT_THAT(green.second, testing::ContainsRegex(fmt::format("\n +{} +64 .*<- the best\n", green.first)));
  EXPECT_THAT(cheap.second, HasSubstr("price"));
}

TEST(PlanGoal, SaysWhatAnotherNoiseScaleWouldChangeAndWhatTheRateShould) {
  const Small small({"plan.batches=[16,64,256,1024]", "plan.noise_scale=100"});
  const PlanGoal goal(small.config);
  const auto plans = compare_plans(small.config, 4, 0, goal, small.free, 1);
  const std::string text = comparison_text(plans, goal, small.free, 8);
  EXPECT_THAT(text, HasSubstr("at a noise scale of 100 samples "));
  const int chosen = plans[best_plan(plans, goal)].size.batch;
  const double gain = (1 + 100.0 / 8) / (1 + 100.0 / chosen);
  EXPECT_THAT(text, HasSubstr(fmt::format("a step may go {:.2f} times as far", gain)));
}

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(PlanPage, DrawsWithinItsPicturesAndFetchesNothing) {
  const Small small({"memory.device_limit=8GiB", "grid.pipeline=4", "grid.data=1", "grid.tensor=1",
                     "plan.batches=[128,64]", "plan.noise_scale=100"});
  const PlanGoal goal(small.config);
  const auto plans = compare_plans(small.config, 4, 0, goal, small.free, 1);
  ASSERT_GE(best_plan(plans, goal), 0);
  EXPECT_EQ(plans.front().size.batch, 64) << "batches ascend, so that the smaller of two equal ones wins";
  const std::string page = plan_page(plans, goal, small.free, "a <b> & c");
  EXPECT_EQ(count_of(page, "<svg"), 5);
  EXPECT_EQ(count_of(page, ">stage 3<"), 2) << "a row of the step, and one of memory";
  EXPECT_EQ(count_of(page, "http"), count_of(page, "http://www.w3.org/2000/svg"));
  EXPECT_THAT(page, HasSubstr("a &lt;b> &amp; c"));
  EXPECT_THAT(page, testing::Not(testing::ContainsRegex("[^a-z](nan|inf)[^a-z]")));
  const std::regex box("<rect class=\"([a-z0-9]+)\" x=\"([-0-9.e]+)\" y=\"[-0-9.]+\" width=\"([-0-9.e]+)\"");
  std::map<std::string, double> drawn;  // pixels of each kind
  for (std::sregex_iterator at(page.begin(), page.end(), box), end; at != end; ++at) {
    const double x = std::stod((*at)[2]), width = std::stod((*at)[3]);
    EXPECT_TRUE(x >= 0 && width > 0 && x + width <= 961) << (*at)[0];
    drawn[(*at)[1]] += width;
  }
  EXPECT_GT(drawn["backward"], 1.5 * drawn["forward"]) << "a backward takes about twice as long";
  EXPECT_GT(drawn["forward"], 100);
}

TEST(PlanComparison, IsToldInJson) {
  const Small small(
      {"energy.carbon_intensity=400", "energy.source=a table", "plan.objective=cost", "plan.rank_hour=3600"});
  const PlanGoal goal(small.config);
  const auto plans = compare_plans(small.config, 2, 4, goal, small.free, 1);
  const auto json = nlohmann::json::parse("[" + comparison_json(plans, goal, small.free) + "]");
  ASSERT_EQ(json.size(), 2u);
  for (const auto& plan : json) {
    const double seconds = 1e-9 * plan["step_ns"].get<double>();
    EXPECT_NEAR(plan["price"].get<double>(), plan["ranks"].get<double>() * seconds, 1e-9);
    EXPECT_NEAR(plan["kg_co2e"].get<double>(), plan["estimated_joules"].get<double>() / 3.6e6 * 0.4, 1e-12);
    EXPECT_EQ(plan["worth"], 64);
  }
}

TEST(PlanGoal, CountsTheProcessorsOfARank) {
  const Small small({"device.kind=cpu"});
  const PlanGoal goal(small.config);
  LayoutCandidate step;
  step.step = step.work = 1'000'000'000;
  EXPECT_NEAR(goal.joules(step, {1, 64, 8}), 8 * goal.joules(step, {1, 64, 1}), 1e-9);
}

}  // namespace
}  // namespace mindpipe
