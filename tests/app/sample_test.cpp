#include "app/verbs/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "config/sections/generate.h"
#include "core/check.h"

namespace mindpipe {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                infinity = std::numeric_limits<float>::infinity();

TEST(Sample, KnowsLogitsThatNothingCanBeDrawnFrom) {
  EXPECT_FALSE(unfit_to_draw({1, 2, 3}));
  EXPECT_FALSE(unfit_to_draw({-infinity, 2, -infinity})) << "a token that cannot be leaves the others";
  EXPECT_EQ(unfit_to_draw({1, infinity, 3}), infinity);
  EXPECT_EQ(unfit_to_draw({-infinity, -infinity}), -infinity);
  for (const std::vector<float>& logits :
       {std::vector<float>{nan, 1}, {1, nan}, {infinity - infinity, -infinity}})
    EXPECT_TRUE(std::isnan(unfit_to_draw(logits).value()));
}

TEST(Sample, TakesTheLikeliestOrDrawsAmongThoseThatCanBe) {
  const std::vector<float> logits{-infinity, 1, 3, 3, 2};
  const RandomStream stream{7, purpose_of("sample"), 0, 0};
  GenerateConfig rule;
  rule.temperature = 0;
  EXPECT_EQ(sample_token(logits, rule, stream, 0), 2) << "the lower of two that are alike";
  rule.temperature = 1;
  std::vector<int> drawn(logits.size());
  for (int i = 0; i < 1000; ++i) ++drawn[sample_token(logits, rule, stream, i)];
  EXPECT_EQ(drawn[0], 0);
  EXPECT_NEAR(drawn[1], 55, 30);  // e^-2 of 2 + e^-1 + e^-2
  EXPECT_NEAR(drawn[2], 400, 60);
  EXPECT_NEAR(drawn[4], 147, 45);
  EXPECT_THROW(sample_token({1, nan}, rule, stream, 0), Error);
}

}  // namespace
}  // namespace mindpipe
