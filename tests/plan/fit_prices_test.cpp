#include "plan/fit_prices.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "plan/run_plan.h"
#include "plan/set_prices.h"
#include "program/choose_rooms.h"
#include "spaces.h"
#include "supernet/sampler.h"

// Prices that are found from how long passes took, beside those that the passes were made with.
namespace mindpipe {
namespace {

constexpr int fitted_stages = 4;

Config fitted_run(const std::string& prices = "equal", int stages = fitted_stages) {
  Config c;
  c.run.dir = "unused";
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.model.kind = ModelKind::supernet;
  c.schedule.kind = ScheduleKind::causal;
  c.model.supernet.space = space_from(
      "{name: f, decoder: {blocks: 16, candidates: [attention-4, glu, light-3-4, light-5-4, conv-3, mlp-2, "
      "mlp-4, "
      "identity]}}");
  c.model.supernet.width = 32;
  c.model.supernet.context = c.data.sequence = 16;
  c.grid.pipeline = stages;
  c.train.batch = 8;
  c.train.micro_batch = 8;
  c.train.steps = 240;
  c.supernet.prices = prices;
  return resolve(c);
}

/// What passes of this machine cost, by far not what the table says.
Prices true_prices(std::vector<double> stages) {
  Prices prices{.unit = 1e-3, .backward = 1.7, .update = 0.2, .embedding = 0.4, .bridge = 0, .head = 2.5};
  prices.stages = std::move(stages);
  for (int block = 0; block < 16; ++block)
    prices.candidates.push_back({2.5, 1.5, 0.6, 0.7, 1.2, 0.8, 1.6, 0.1});
  return prices;
}

/// The passes of all subnets on such a machine, each up to `noise` longer or shorter, and a tenth of them
/// disturbed: three times as long.
std::vector<StagePasses> passes_with(const Prices& prices, const Outline& outline, const Config& config,
                                     double noise) {
  std::mt19937 random(7);
  const auto drawn = [&] { return static_cast<double>(random()) / 4294967296.0; };
  const auto lasting = [&](double time) {
    return time * (1 + noise * (2 * drawn() - 1)) * (drawn() < 0.1 ? 3 : 1);
  };
  std::vector<StagePasses> all;
  const auto stream = stream_of(config);
  for (int id = 0; id < 192; ++id) {
    const Subnet subnet = stream->next();
    for (int stage = 0; stage < outline.stages; ++stage) {
      StagePasses pass{stage, outline.first_block[stage], outline.first_block[stage + 1], subnet.choice};
      double candidates = 0, shared = 0;
      for (int block = pass.first; block < pass.last; ++block) {
        if (block == 0) shared += prices.embedding;
        else if (block + 1 == outline.all_blocks()) shared += prices.head;
        else candidates += prices.candidates[block - 1][subnet.choice[block - 1]];
      }
      const double slow = prices.unit * (prices.stages.empty() ? 1 : prices.stages[stage]);
      pass.forward = lasting(slow * (candidates + shared));
      pass.backward = lasting(slow * (candidates + shared) * prices.backward);
      pass.update = lasting(slow * candidates * prices.update);
      all.push_back(std::move(pass));
    }
  }
  return all;
}

class FittedFile {
 public:
  explicit FittedFile(const FittedPrices& prices) { std::ofstream(path_) << text_of(prices, "runs/before"); }
  ~FittedFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("mindpipe_fitted_" + std::to_string(getpid()) + ".yaml"));
};

struct Machine {
  std::vector<double> stages;
  double noise;
  friend std::ostream& operator<<(std::ostream& out, const Machine& machine) {
    return out << fmt::format("stages [{}], noise {}", fmt::join(machine.stages, ", "), machine.noise);
  }
};

class FittedPricesTest : public ::testing::TestWithParam<Machine> {
 protected:
  const Prices prices_ = true_prices(GetParam().stages);
  const Config config_ = fitted_run();
  const RunPlan plan_ = make_run_plan(config_);
  const FittedPrices found_ = fit_prices(plan_.outline, config_.model.supernet.space,
                                         passes_with(prices_, plan_.outline, config_, GetParam().noise));
};

TEST_P(FittedPricesTest, AreThoseOfThePasses) {
  const FittedFile file(found_);
  const Prices read = read_prices(file.path(), config_.model.supernet.space);
  const double near = 0.01 + GetParam().noise;
  for (std::size_t i = 0; i < 8; ++i) {
    const double wanted = prices_.unit * prices_.candidates[0][i];
    EXPECT_NEAR(read.unit * read.candidates[0][i], wanted, std::max(near * wanted, 0.02 * prices_.unit)) << i;
  }
  EXPECT_NEAR(read.unit * read.embedding, prices_.unit * 0.4, 0.25 * prices_.unit);
  EXPECT_NEAR(read.unit * read.head, prices_.unit * 2.5, 0.4 * prices_.unit);
  EXPECT_NEAR(read.backward, 1.7, 1.7 * near);
  EXPECT_NEAR(read.update, 0.2, 0.2 * near);
  for (int stage = 0; stage < fitted_stages; ++stage)
    EXPECT_NEAR(found_.stages[stage], GetParam().stages.empty() ? 1 : GetParam().stages[stage], 0.06)
        << stage;
  EXPECT_EQ(read.stages.empty(), GetParam().stages.empty());
}

/// What such a file lets the planner expect is what the simulator says of the true prices.
TEST_P(FittedPricesTest, LetTheNextRunBePlannedAsByTheTrueOnes) {
  const FittedFile file(found_);
  const Config next = fitted_run(file.path());
  const RunPlan plan = make_run_plan(next);
  Outline truly = plan.outline;
  set_prices(truly, prices_, fitted_stages);
  const auto stream = stream_of(next);
  std::vector<Subnet> subnets;
  for (int id = 0; id < 240; ++id) subnets.push_back(stream->next());
  const SubnetRules& rules = plan.subnets->paper.rules;
  const auto time_by = [&](const Outline& outline) {
    return static_cast<double>(simulate_rooms(outline, plan.evaluation.network, rules, subnets).time);
  };
  EXPECT_NEAR(time_by(plan.outline) / time_by(truly), 1, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Of, FittedPricesTest,
                         ::testing::Values(Machine{{}, 0}, Machine{{}, 0.05}, Machine{{1, 1, 1.2, 1}, 0.03},
                                           Machine{{1.2, 1, 1, 1}, 0.01}, Machine{{1, 1, 1, 1.2}, 0.01}),
                         [](const auto& info) { return fmt::format("Machine{}", info.index); });

TEST(FittedPricesOf, AWordThatNoPassHadIsAsFarOffAsTheOthers) {
  const Config config = fitted_run();
  const RunPlan plan = make_run_plan(config);
  std::vector<StagePasses> passes = passes_with(true_prices({}), plan.outline, config, 0);
  std::erase_if(passes, [](const StagePasses& pass) {
    return std::any_of(pass.choice.begin(), pass.choice.end(), [](std::uint8_t word) { return word == 1; });
  });
  for (StagePasses& pass : passes) pass.forward *= 3;
  ASSERT_GE(passes.size(), 60u);
  const FittedPrices found = fit_prices(plan.outline, config.model.supernet.space, passes);
  std::vector<double> others;
  for (const auto& [word, off] : found.off)
    if (word != "glu") others.push_back(off);
  std::sort(others.begin(), others.end());
  EXPECT_EQ(found.off.at("glu"), others[(others.size() - 1) / 2]);
}

}  // namespace
}  // namespace mindpipe
