#include <gtest/gtest.h>

#include "io/manifest.h"

namespace mindpipe {
namespace {

TEST(RunProgress, EachStepSeesTheSamplesThatFollowAndNoneThatIsLeftOut) {
  RunProgress progress;
  EXPECT_EQ(progress.first_sample(7, 4), 28);
  progress.leave_out({8, 20});
  EXPECT_EQ(progress.first_sample(1, 4), 4);
  EXPECT_EQ(progress.first_sample(2, 4), 20);
  EXPECT_EQ(progress.first_sample(3, 4), 24);
  progress.leave_out({28, 32});
  EXPECT_EQ(progress.first_sample(3, 4), 24);
  EXPECT_EQ(progress.first_sample(4, 4), 32);
  progress.leave_out({32, 36});
  EXPECT_EQ(progress.left_out, (std::vector<SampleRange>{{8, 20}, {28, 36}})) << "ranges that meet are one";
  progress.leave_out({4, 60});
  EXPECT_EQ(progress.left_out, (std::vector<SampleRange>{{4, 60}})) << "an older checkpoint was gone back to";
}

}  // namespace
}  // namespace mindpipe
