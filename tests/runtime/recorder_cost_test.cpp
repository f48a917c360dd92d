#include "recorder_cost.h"

#include <gtest/gtest.h>

namespace mindpipe {
namespace {

/// Other work on the machine can spoil a stretch, so the best of several counts.
TEST(RecorderCost, IsBelowOnePercentOfTheShortestActions) {
  RecorderCost best{0, 1, 1};
  for (int attempt = 0; attempt < 5 && best.share() >= 0.01; ++attempt) {
    const RecorderCost cost = recorder_cost(51);
    std::printf("%s\n", to_string(cost).c_str());
    EXPECT_GT(cost.recording_ns, 0);
    if (cost.share() < best.share()) best = cost;
  }
  EXPECT_LT(best.share(), 0.01);
}

}  // namespace
}  // namespace mindpipe
