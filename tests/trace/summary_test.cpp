#include "trace/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

RunFacts facts_of(int micro_batches = 8, int data = 1, int tensor = 1) {
  RunFacts facts;
  facts.micro_batches = micro_batches;
  facts.data = data;
  facts.tensor = tensor;
  return facts;
}

TEST(Advice, ARunThatComputesAllTheTimeGetsNone) {
  EXPECT_THAT(advice_on({good()}, facts_of()), IsEmpty());
  EXPECT_THAT(advice_on({good(), good(), good(), good()}, facts_of(8, 2, 2)), IsEmpty());
  EXPECT_THAT(advice_on({}, facts_of()), IsEmpty());
  EXPECT_THAT(advice_on({TimeSpent{}}, facts_of()), IsEmpty());
}

TEST(Advice, AnEmptyPipelineWantsMoreMicroBatchesUnlessItHasMany) {
  TimeSpent t = good();
  t.forward = 20;
  t.backward = 40;
  t.wait_pipeline = 20;
  t.wait_scalars = 10;
  EXPECT_THAT(
      advice_on({t, t}, facts_of(4)),
      ElementsAre(HasSubstr("stages wait for each other 30 % of the time; more than 4 micro-batches")));
  EXPECT_THAT(advice_on({t, t}, facts_of(8)), ElementsAre(HasSubstr("fewer stages")));
  RunFacts filled = facts_of(4);
  filled.schedule = ScheduleKind::zero_bubble;
  EXPECT_THAT(advice_on({t, t}, filled).front(), testing::Not(HasSubstr("zb-h1")));
  EXPECT_THAT(advice_on({t}, facts_of(4)), testing::Not(testing::Contains(HasSubstr("stages wait"))))
      << "one stage has nobody to wait for";
}

TEST(Advice, AStageThatComputesMoreThanOthersByFifteenPercentIsNamed) {
  TimeSpent heavy = good(), light = good();
  heavy.forward = 36;
  heavy.backward = 62;
  EXPECT_THAT(advice_on({light, heavy, light}, facts_of()), IsEmpty());
  heavy.forward = 50;
  heavy.backward = 70;
  heavy.steps = light.steps = 130;
  light.wait_pipeline = 0;
  const auto notes = advice_on({light, heavy, light}, facts_of());
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes[0], HasSubstr("stage 1 computes 20 % more than the mean"));
  RunFacts cut = facts_of();
  cut.own_cuts = true;
  EXPECT_THAT(advice_on({light, heavy, light}, cut)[0], HasSubstr("leave schedule.cuts out"));
}

TEST(Advice, EachWaitHasItsSentence) {
  TimeSpent t = good();
  t.forward = 20;
  t.wait_tensor = 12;
  EXPECT_THAT(advice_on({t}, facts_of(8, 1, 2)),
              ElementsAre(HasSubstr("passes wait 12 % of the time for tensor sums")));
  EXPECT_THAT(advice_on({t}, facts_of(8, 1, 1)), IsEmpty());
  t = good();
  t.forward = 20;
  t.wait_data = 10;
  EXPECT_THAT(advice_on({t}, facts_of(8, 2)),
              ElementsAre(HasSubstr("sums of gradients stand still 10 % of the time")));
  t = good();
  t.forward = 20;
  t.wait_copy = 10;
  EXPECT_THAT(advice_on({t}, facts_of()), ElementsAre(HasSubstr("copies between memories")));
  t = good();
  t.forward = 5;
  t.update = 30;
  EXPECT_THAT(advice_on({t}, facts_of()),
              ElementsAre(HasSubstr("updates take 30 % of the time; a larger train.batch")));
  EXPECT_THAT(advice_on({t}, facts_of(8, 2)), ElementsAre(HasSubstr("train.zero: 1")));
  t = good();
  t.forward = 10;
  t.scalars = 21;
  EXPECT_THAT(advice_on({t}, facts_of()), ElementsAre(HasSubstr("gradient's norm")));
  t = good();
  t.forward = 10;
  EXPECT_THAT(advice_on({t}, facts_of()), ElementsAre(HasSubstr("goes to nothing of these")));
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
