#include "trace/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trace/recorded_steps.h"

namespace mindpipe {
namespace {

TEST(Recorder, HoldsTheLastStepsOldestFirst) {
  Recorder recorder(2, 3);
  EXPECT_EQ(recorder.held(), 0u);
  for (std::int64_t step = 0; step < 5; ++step) {
    recorder.begin_step(step);
    for (int action = 0; action < 2; ++action) {
      recorder.start(action, 100 * step + action);
      recorder.end(action, 100 * step + action + 10);
    }
  }
  ASSERT_EQ(recorder.held(), 3u);
  EXPECT_EQ(recorder.first_held_step(), 2);
  for (std::size_t held = 0; held < 3; ++held)
    for (std::size_t action = 0; action < 2; ++action)
      EXPECT_EQ(recorder.times(held, action).start, static_cast<std::int64_t>(100 * (held + 2) + action));
}

TEST(Recorder, HoldsTheLastStretchesEachAsLongAsItIs) {
  Recorder recorder(3);
  EXPECT_EQ(recorder.held(), 0u);
  std::size_t before = 0;
  for (std::size_t stretch = 0; stretch < 50; ++stretch) {
    const std::size_t actions = stretch % 4;  // and some have none
    recorder.begin_stretch(actions, before);
    before = actions;
    for (std::size_t i = 0; i < actions; ++i) {
      recorder.start(static_cast<int>(i), static_cast<std::int64_t>(100 * stretch + i));
      recorder.end(static_cast<int>(i), static_cast<std::int64_t>(100 * stretch + i + 10));
    }
    recorder.add({"sum", static_cast<std::int64_t>(stretch), 0, 0});
    ASSERT_EQ(recorder.held(), std::min<std::size_t>(3, stretch + 1));
    EXPECT_EQ(recorder.first_held_step(), static_cast<std::int64_t>(stretch + 1 - recorder.held()));
    for (std::size_t held = 0; held < recorder.held(); ++held) {
      const std::size_t number = stretch + 1 - recorder.held() + held;
      ASSERT_EQ(recorder.actions(held), number % 4);
      for (std::size_t i = 0; i < recorder.actions(held); ++i) {
        EXPECT_EQ(recorder.times(held, i).start, static_cast<std::int64_t>(100 * number + i));
        EXPECT_EQ(recorder.times(held, i).end, static_cast<std::int64_t>(100 * number + i + 10));
      }
      ASSERT_EQ(recorder.sums(held).size(), 1u);
      EXPECT_EQ(recorder.sums(held)[0].start, static_cast<std::int64_t>(number));
    }
  }
}

/// What a list has not dropped is recorded, though its row is no longer held.
TEST(Recorder, TakesWhatEndsManyStretchesLater) {
  Recorder recorder(2);
  recorder.begin_stretch(1, 0);
  recorder.start(0, 5);
  for (int stretch = 1; stretch < 20; ++stretch) {
    recorder.begin_stretch(1, 0);
    recorder.start(stretch, 10 * stretch);
    recorder.end(stretch, 10 * stretch + 1);
    EXPECT_EQ(recorder.times(0, 0).start, stretch == 1 ? 5 : 10 * (stretch - 1));
  }
  recorder.end(0, 1000);
  EXPECT_EQ(recorder.times(0, 0).end, 181) << "the row of the stretch before the last is as it was";
  recorder.begin_stretch(1, 20);
  recorder.start(0, 200);
  recorder.end(0, 201);
  EXPECT_EQ(recorder.times(0, 0).end, 191);
  EXPECT_EQ(recorder.times(1, 0).end, 201);
}

TEST(Recorder, ForgetsWhatNobodyAsksForAnyMore) {
  Recorder recorder(4);
  for (int stretch = 0; stretch < 1000; ++stretch) recorder.begin_stretch(25, stretch == 0 ? 0 : 25);
  EXPECT_LE(recorder.capacity(), 4u * (4 * 25 + 25));
}

TEST(RecordedSteps, AreMoreWhereAStepHasFewActions) {
  EXPECT_EQ(recorded_steps(3, 800), 28);
  EXPECT_EQ(recorded_steps(3, 50'000), 20) << "so many as take 16 MiB";
  EXPECT_EQ(recorded_steps(3, 64 * 5000), 12);
  EXPECT_EQ(recorded_steps(40, 64 * 5000), 40);
  EXPECT_EQ(recorded_steps(0, 800), 1);
}

}  // namespace
}  // namespace mindpipe
