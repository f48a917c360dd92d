#include "app/plan/measure_layouts.h"

#include <gtest/gtest.h>

namespace mindpipe {
namespace {

// Two turns of five steps; others run a while on the machine in the second.
const std::vector<double> start = {1.00, 1.02, 1.01, 1.03, 1.01, 1.40, 1.43, 1.41, 1.42, 1.44};

std::vector<double> beside_start(const std::vector<double>& gains) {
  std::vector<double> steps;
  for (std::size_t step = 0; step < start.size(); ++step) steps.push_back(start[step] - gains[step]);
  return steps;
}

TEST(MeasuredLayouts, AreFasterThoughTheMachineIsSlowForAWhile) {
  EXPECT_TRUE(
      surely_faster(beside_start({0.02, 0.03, 0.02, 0.03, 0.02, 0.03, 0.02, 0.03, 0.02, 0.03}), start));
}

TEST(MeasuredLayouts, AreFasterThoughOneOfTheirStepsWasHeldUp) {
  std::vector<double> gains(start.size(), 0.2);
  gains[3] = -1;
  EXPECT_TRUE(surely_faster(beside_start(gains), start));
  gains[7] = -0.5;
  EXPECT_FALSE(surely_faster(beside_start(gains), start));
}

TEST(MeasuredLayouts, AreNotFasterByWhatScattersAboutNothing) {
  EXPECT_FALSE(
      surely_faster(beside_start({0.05, -0.04, 0.06, -0.05, 0.04, -0.03, 0.05, -0.06, 0.05, -0.02}), start));
  EXPECT_FALSE(surely_faster(start, start));
}

TEST(MeasuredLayouts, AreNotFasterWhereOneOfTheirTurnsWasSlower) {
  EXPECT_FALSE(
      surely_faster(beside_start({0.1, 0.1, 0.1, 0.1, 0.1, -0.09, -0.09, -0.09, -0.09, -0.09}), start));
}

}  // namespace
}  // namespace mindpipe
