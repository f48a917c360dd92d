#include "program/clock/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>

namespace mindpipe {
namespace {

using testing::ElementsAre;

/// A source that is told what to do and remembers what it was asked.
struct Told : Source {
  std::map<int, std::deque<Task>> of_rank;  // that a rank begins, one after the other
  std::function<bool(Clock&)> opens = [](Clock&) { return true; };
  std::function<void(const Task&, Clock&)> ends = [](const Task&, Clock&) {};
  std::function<bool(Clock&)> rests = [](Clock&) { return false; };
  int unknown_on = -1;
  WaitReason reason = WaitReason::input;
  std::vector<std::string> heard;

  bool open(Clock& clock) override {
    heard.push_back("open");
    return opens(clock);
  }
  Answer next(int rank, const Clock&, Task& task, WaitReason& why) override {
    heard.push_back("next " + std::to_string(rank));
    if (rank == unknown_on) return Answer::unknown;
    why = reason;
    if (of_rank[rank].empty()) return Answer::waits;
    task = of_rank[rank].front();
    of_rank[rank].pop_front();
    return Answer::begins;
  }
  void ended(const Task& task, Clock& clock) override {
    heard.push_back("end " + std::to_string(task.number));
    ends(task, clock);
  }
  bool at_rest(Clock& clock) override { return rests(clock); }
};

/// What begins while a source is run: numbers, and when.
struct Begun {
  std::vector<int> numbers;
  std::vector<std::int64_t> times;
  void operator()(const Task& task) {
    numbers.push_back(task.number);
    times.push_back(task.start);
  }
};
bool run(Clock& clock, Told& source, Begun& begun) {
  return clock.run(source, [&](const Task& task) { begun(task); });
}

Task pass(int number, std::int64_t lasts) { return {.number = number, .lasts = lasts}; }
Task message(int number, int from, int to, std::int64_t lasts) {
  return {.kind = TaskKind::message, .rank = from, .peer = to, .number = number, .lasts = lasts};
}

TEST(Clock, TellsAllEndsOfAMomentBeforeItAsksTouchedRanksInOrderEachOnce) {
  Clock clock(70);
  Told source;
  for (const int rank : {0, 1, 69}) source.of_rank[rank] = {pass(rank, 10)};
  for (const int rank : {69, 1, 0, 1}) clock.touch(rank);
  source.ends = [](const Task&, Clock& now) { now.touch(1); };
  Begun begun;
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_THAT(begun.numbers, ElementsAre(0, 1, 69));
  EXPECT_THAT(source.heard, ElementsAre("open", "next 0", "next 1", "next 69", "end 0", "end 1", "end 69",
                                        "open", "next 0", "next 1", "next 69"));
  EXPECT_EQ(clock.now(), 10);
}

TEST(Clock, AsksNoRankThatRunsSomething) {
  Clock clock(1);
  Told source;
  source.of_rank[0] = {pass(0, 10)};
  clock.touch(0);
  bool first = true;
  source.opens = [&](Clock& now) {
    if (first) now.begin(message(1, 0, 1, 5));
    first = false;
    return true;
  };
  source.ends = [](const Task&, Clock& now) { now.touch(0); };
  Begun begun;
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_THAT(source.heard, ElementsAre("open", "next 0", "end 1", "open", "end 0", "open", "next 0"));
}

TEST(Clock, ComesBackToTheRankThatDependsOnWhatIsNotKnown) {
  Clock clock(3);
  Told source;
  for (const int rank : {0, 1, 2}) {
    source.of_rank[rank] = {pass(rank, 10)};
    clock.touch(rank);
  }
  source.unknown_on = 1;
  Begun begun;
  EXPECT_FALSE(run(clock, source, begun));
  EXPECT_THAT(begun.numbers, ElementsAre(0));
  EXPECT_EQ(clock.now(), 0) << "nobody has waited yet";
  source.unknown_on = -1;
  source.heard.clear();
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_THAT(begun.numbers, ElementsAre(0, 1, 2));
  EXPECT_THAT(begun.times, ElementsAre(0, 0, 0));
  EXPECT_EQ(source.heard[1], "next 1") << "rank 0 has been asked";
}

TEST(Clock, StopsAtAMomentThatIsNotOpened) {
  Clock clock(1);
  Told source;
  source.opens = [&](Clock& now) {
    if (now.now() == 10) return false;
    now.begin(pass(0, 10));
    return true;
  };
  Begun begun;
  EXPECT_FALSE(run(clock, source, begun));
  EXPECT_EQ(clock.now(), 10);
  source.opens = [](Clock&) { return true; };
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_EQ(clock.now(), 10);
}

TEST(Clock, LetsTasksOfOneWayFollowEachOther) {
  Clock clock(2);
  Told source;
  bool first = true;
  source.opens = [&](Clock& now) {
    if (!first) return true;
    first = false;
    now.put(message(0, 0, 1, 10));
    now.put(message(1, 0, 1, 5));
    now.put(message(2, 1, 0, 3));  // another rank's
    Task back = message(3, 0, 1, 7);
    back.with_forward = false;  // another channel
    now.put(back);
    for (const int number : {4, 5, 7})  // sums and gathers of a rank: two at a time
      now.put(
          {.kind = number == 5 ? TaskKind::gather : TaskKind::sum, .rank = 1, .number = number, .lasts = 4});
    now.begin(message(6, 0, 1, 1));
    return true;
  };
  Begun begun;
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_THAT(begun.numbers, ElementsAre(0, 2, 3, 4, 5, 6, 7, 1));
  EXPECT_THAT(begun.times, ElementsAre(0, 0, 0, 0, 0, 0, 4, 10));
  EXPECT_EQ(clock.now(), 15);
}

TEST(Clock, LetsTheNextOnTheWayBeginBeforeItTellsOfAnEnd) {
  Clock clock(1);
  Told source;
  clock.touch(0);
  source.of_rank[0] = {pass(0, 10)};
  const Clock::Way way{.kind = TaskKind::message, .peer = 1};
  source.ends = [&](const Task& task, Clock& now) {
    if (task.number == 0)
      for (const int number : {1, 2}) now.put(message(number, 0, 1, 10));
    if (task.number == 1) {
      EXPECT_EQ(now.on_way(0, way)->number, 2);
      now.put(message(3, 0, 1, 10));
    }
  };
  Begun begun;
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_THAT(begun.numbers, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(begun.times, ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(clock.on_way(0, way), nullptr);
}

TEST(Clock, SaysWhatARankRunsAndWhyItStoodIdle) {
  Clock clock(1);
  Told source;
  clock.touch(0);
  source.reason = WaitReason::owner;
  bool begins = true;
  source.opens = [&](Clock& now) {
    if (begins) now.begin(message(0, 0, 1, 30));
    begins = false;
    return true;
  };
  source.ends = [&](const Task& task, Clock& now) {
    if (task.number != 0) return;
    EXPECT_EQ(now.runs(0), nullptr);
    source.of_rank[0] = {pass(1, 10)};
    now.touch(0);
  };
  Task seen;
  EXPECT_TRUE(clock.run(source, [&](const Task& task) {
    if (task.number != 1) return;
    seen = task;
    EXPECT_EQ(clock.runs(0)->end, 40);
  }));
  EXPECT_EQ(seen.waits, WaitReason::owner);
  EXPECT_THAT(clock.idle(0), ElementsAre(0, 30, 0));
}

TEST(Clock, GoesOnWhereSomethingIsPutAtRest) {
  Clock clock(1);
  Told source;
  int left = 2;
  source.rests = [&](Clock& now) {
    if (left == 0) return false;
    now.put(message(left--, 0, 1, 5));
    return true;
  };
  Begun begun;
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_THAT(begun.numbers, ElementsAre(2, 1));
  EXPECT_EQ(clock.now(), 10);
}

/// A message of several turns, behind another one of its rank.
TEST(Clock, KnowsWhenTheLastTurnOfAMessageArrives) {
  Told source;
  Clock clock(3);
  Task short_one = message(2, 1, 0, 0), long_one = message(3, 1, 2, 0);
  short_one.load = {.takes = 100'000};
  long_one.load = {.takes = 600'000, .latency = 10, .calls = 3};
  source.of_rank[0].push_back(pass(1, 50'000));
  bool is_open = false;
  source.opens = [&](Clock& now) {
    if (is_open) return true;
    is_open = true;
    now.touch(0);
    now.put(short_one);
    now.put(long_one);
    return true;
  };
  std::int64_t expected = 0, ended = 0;
  source.ends = [&](const Task& task, Clock& now) {
    if (task.number == 1) expected = now.arrives(1, {TaskKind::message, 2, true});
    if (task.number == 3) ended = task.end;
  };
  std::vector<std::int64_t> offered;
  clock.watch_ports([&](const Ports::Left& left) { offered.push_back(left.offered); });
  Begun begun;
  EXPECT_TRUE(run(clock, source, begun));
  EXPECT_EQ(ended, 700'010);
  EXPECT_EQ(expected, ended);
  EXPECT_THAT(offered, ElementsAre(0, 0, 300'000, 500'000)) << "a turn does not wait for those before it";
}

}  // namespace
}  // namespace mindpipe
