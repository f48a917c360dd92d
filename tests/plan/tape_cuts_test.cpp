#include <gtest/gtest.h>

#include "plan/tape_cuts.h"
#include "program/sample_outline.h"

// Cuts that are chosen with the fates of tapes.
namespace mindpipe {
namespace {

TEST(TapeCuts, CountOnceWhatTwoBlocksOfAStageShare) {
  constexpr std::int64_t values = 1'000'000, state = 2'000'000;
  Outline outline = equal_stages(1, 1, 1, {}, 2);
  tie(outline, {0, 1}, 40);
  outline.units[0].values = values;
  outline.units[0].state = state;
  const auto fits = [&](std::int64_t limit) {
    return !cuts_of_tapes(outline, outline, {1}, {.hidden = 1}, limit).empty();
  };
  EXPECT_FALSE(fits(values + state));
  EXPECT_TRUE(fits(values + state + 100'000)) << "uses have gradients and tapes of their own";
}

}  // namespace
}  // namespace mindpipe
