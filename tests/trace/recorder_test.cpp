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

/// What a list that grows has not dropped is recorded, whenever it ends.
TEST(Recorder, HoldsWhatAListThatGrowsHolds) {
  Recorder recorder;
  std::size_t dropped = 0, actions = 0;  // each action ends two stretches behind its own
  for (std::size_t stretch = 0; stretch < 50; ++stretch) {
    const std::size_t more = stretch % 4, gone = stretch >= 3 ? (stretch - 3) % 4 : 0;  // some have none
    recorder.grow(more, gone);
    dropped += gone;
    actions += more;
    ASSERT_EQ(recorder.held(), 1u);
    for (std::size_t i = dropped; i < actions; ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const int place = static_cast<int>(i - dropped);
      if (i + more >= actions) recorder.start(place, 10 * number + 1);
      else EXPECT_EQ(recorder.times(0, i - dropped).start, 10 * number + 1);
      EXPECT_EQ(recorder.times(0, i - dropped).end, 0);
    }
    for (std::size_t i = dropped; stretch >= 2 && i < dropped + (stretch - 2) % 4; ++i) {
      recorder.end(static_cast<int>(i - dropped), 10 * static_cast<std::int64_t>(i) + 5);
      EXPECT_EQ(recorder.times(0, i - dropped).end, 10 * static_cast<std::int64_t>(i) + 5);
    }
  }
  EXPECT_LE(recorder.capacity(), 4u * 4);
}

TEST(Recorder, GivesAwayTheSumsOfAListThatGrows) {
  Recorder recorder;
  for (int stretch = 0; stretch < 3; ++stretch) {
    recorder.grow(1, 0);
    for (int sum = 0; sum < stretch; ++sum) recorder.add({"sum", stretch, stretch + 1, sum});
    if (stretch == 1) continue;  // nobody asks
    const std::vector<Recorder::Sum> sums = recorder.take_sums();
    ASSERT_EQ(sums.size(), static_cast<std::size_t>(stretch));
    for (int sum = 0; sum < stretch; ++sum) EXPECT_EQ(sums[sum].bytes, sum);
    EXPECT_TRUE(recorder.take_sums().empty());
  }
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
