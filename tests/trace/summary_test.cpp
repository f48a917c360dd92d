#include "trace/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// A stage that computes nearly all the time: 30 forward, 60 backward, 5 update, 1 scalars of 100.
TimeSpent good() {
  TimeSpent t;
  t.forward = 30;
  t.backward = 60;
  t.update = 5;
  t.scalars = 1;
  t.wait_pipeline = 2;
  t.steps = 100;
  return t;
}

TEST(Table, ALineForEachStageAddsUpToAHundred) {
  TimeSpent t = good();
  EXPECT_NEAR(t.bubble(), 0.05, 1e-12);
  const std::string text = table_of({t, t}, {0.04, 0.06});
  EXPECT_THAT(text, HasSubstr("simulated"));
  EXPECT_THAT(text, HasSubstr("0           30.0      60.0     5.0     1.0 |      2.0     0.0     0.0     0.0 "
                              "    0.0      2.0 |     5.0        4.0\n"))
      << text;
  EXPECT_THAT(table_of({t}, {}), testing::Not(HasSubstr("simulated")));
}

}  // namespace
}  // namespace mindpipe
