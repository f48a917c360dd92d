// thorough
#include <gtest/gtest.h>

#include "program/steps_of_sizes.h"

// Plans of orders that are searched on more stages than plans_test.cpp, whose golden file has them.
namespace mindpipe {
namespace {

class SearchedPlans : public ::testing::TestWithParam<int> {};

TEST_P(SearchedPlans, TakeTheTimeAndMemoryTheyDidOnFiveToEightStages) {
  const std::string got = steps_of_sizes("searched", 2, GetParam(), {5, 8}).text();
  const std::string name = fmt::format("searched of 2 chunks on 5 to 8 stages, zero {}", GetParam());
  EXPECT_EQ(got, golden_plan(name, got)) << name;
}

INSTANTIATE_TEST_SUITE_P(Of, SearchedPlans, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace mindpipe
