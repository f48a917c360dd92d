#include "plan/unequal_stages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "config/config.h"
#include "core/check.h"

namespace mindpipe {
namespace {

/// Every division into stages, one after the other.
class EveryDivision {
 public:
  EveryDivision(const StagesProblem& problem, bool equal) : problem_(problem), equal_(equal) { go_on(0); }
  std::optional<double> least() const { return least_; }

 private:
  void go_on(int first) {
    if (first == problem_.pieces) return judge();
    for (int last = first + 1; last <= problem_.pieces; ++last)
      for (int shape = 0; shape < static_cast<int>(problem_.shapes.size()); ++shape) {
        if (used_ + problem_.shapes[shape].ranks() > problem_.ranks) continue;
        if (equal_ && !stages_.empty() && stages_.front().shape != shape) continue;
        stages_.push_back({first, last, shape});
        used_ += problem_.shapes[shape].ranks();
        go_on(last);
        used_ -= problem_.shapes[shape].ranks();
        stages_.pop_back();
      }
  }
  void judge() {
    if (equal_ && used_ != problem_.ranks) return;
    double sum = 0, longest = 0;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const StageCost& cost = problem_.cost(stages_[i].first, stages_[i].last, stages_[i].shape);
      const auto behind = static_cast<std::int64_t>(stages_.size() - i);
      const std::int64_t bytes =
          cost.held + std::min<std::int64_t>(behind, problem_.micro_batches) * cost.in_flight;
      if (problem_.limit > 0 && bytes > problem_.limit) return;
      sum += cost.time;
      longest = std::max(longest, cost.time);
    }
    const double time = sum + (problem_.micro_batches - 1) * longest;
    if (!least_ || time < *least_) least_ = time;
  }

  const StagesProblem& problem_;
  bool equal_;
  std::vector<PlacedStage> stages_;
  int used_ = 0;
  std::optional<double> least_;
};

StagesProblem drawn(std::mt19937& random) {
  const auto number = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  StagesProblem problem{.pieces = number(1, 7), .ranks = number(1, 8), .micro_batches = number(1, 12)};
  for (const StageShape& shape : {StageShape{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 4}, {3, 1}})
    if (shape.ranks() <= problem.ranks) problem.shapes.push_back(shape);
  std::vector<int> work(problem.pieces), bytes(problem.pieces);
  for (int& one : work) one = number(1, 40);
  for (int& one : bytes) one = number(1, 40);
  int all = 0;
  for (int first = 0; first < problem.pieces; ++first)
    for (int last = 1; last <= problem.pieces; ++last)
      for (const StageShape& shape : problem.shapes) {
        StageCost cost;
        for (int piece = first; piece < last; ++piece) {
          cost.time += work[piece] / (shape.data * std::pow(shape.tensor, 0.7)) + 0.1 * number(0, 3);
          cost.held += bytes[piece] / shape.tensor;
          cost.in_flight += bytes[piece] / 4;
        }
        problem.costs.push_back(cost);
      }
  for (const int one : bytes) all += one;
  const int kind = number(0, 3);  // any memory, enough of it, little, or hardly any
  problem.limit = kind == 0 ? 0 : kind == 1 ? 4 * all : kind == 2 ? all : std::max(1, all / 3);
  return problem;
}

TEST(UnequalStages, AreTheBestOfAllDivisions) {
  std::mt19937 random(7);
  int infeasible = 0, better = 0;
  for (int instance = 0; instance < 5000; ++instance) {
    const StagesProblem problem = drawn(random);
    for (const bool equal : {false, true}) {
      const std::optional<StagesPlan> plan = best_stages(problem, equal);
      const std::optional<double> least = EveryDivision(problem, equal).least();
      ASSERT_EQ(plan.has_value(), least.has_value()) << instance;
      if (plan) {
        ASSERT_NEAR(plan->time, *least, 1e-9 * *least) << instance;
      }
      infeasible += !plan;
    }
    const auto any = best_stages(problem), grid = best_stages(problem, true);
    if (any && grid) {
      EXPECT_LE(any->time, grid->time * (1 + 1e-12));
      better += any->time < 0.97 * grid->time;
    }
  }
  EXPECT_GT(infeasible, 300) << "memory binds";
  EXPECT_GT(better, 300) << "stages of their own are worth something";
}

TEST(UnequalStages, AreSaidWhereTheyWouldBeWorthIt) {
  const std::string file = std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt2-124m.yaml";
  const auto text = [&](int ranks, const std::string& vocabulary) {
    return unequal_text(
        read_config(file, {"device.kind=cuda", "grid.data=1", "model.vocabulary=" + vocabulary,
                           "train.batch=64", "train.micro_batch=4"}),
        ranks);
  };
  EXPECT_EQ(text(2, "50257"), "");
  EXPECT_EQ(text(8, "50257"), "") << "8 replicas of one stage are as good";
}

}  // namespace
}  // namespace mindpipe
