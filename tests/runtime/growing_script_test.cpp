#include <gtest/gtest.h>

#include "comm/plain_backend.h"
#include "program/check/checker.h"
#include "program/check/followed_waits.h"
#include "program/sample_outline.h"
#include "runtime/stretches.h"

namespace mindpipe {
namespace {

/// For each action of a list which earlier ones have surely ended when it starts.
class EndedBefore {
 public:
  explicit EndedBefore(const std::vector<Action>& list) {
    FollowedWaits waits;
    std::vector<ListEntry> entries;
    for (const Action& action : list) {
      waits.add(action, 0);
      std::vector<bool>& ended = ended_.emplace_back();
      for (const ListEntry& earlier : entries) ended.push_back(waits.has_ended(earlier));
      entries.push_back(waits.newest());
    }
  }
  bool operator()(int earlier, int later) const { return ended_[later][earlier]; }

 private:
  std::vector<std::vector<bool>> ended_;
};

/// A list of actions in four queues, each of which comes after some of the last ones of other queues.
std::vector<Action> list_drawn(StretchLots& lots, int actions) {
  std::vector<Action> list;
  for (int i = 0; i < actions; ++i) {
    const std::array kinds{ActionKind::forward, ActionKind::forward, ActionKind::send, ActionKind::receive,
                           ActionKind::reduce};
    Action action = action_of(kinds[lots.below(kinds.size())]);
    if (is_message(action)) action.payload = Payload::activation;
    for (std::size_t waits = lots.below(4); waits > 0 && i > 0; --waits) {
      const int earlier = i - 1 - static_cast<int>(lots.below(static_cast<std::size_t>(std::min(i, 25))));
      if (queue_of(list[earlier]) != queue_of(action)) action.after.push_back(earlier);
    }
    list.push_back(action);
  }
  return list;
}

/// Runs a list stretch by stretch as a host does, but what begins and ends next, and when the list grows, is
/// drawn by lot.
class Play {
 public:
  Play(std::vector<Action> list, StretchLots& lots, int wrong = 0)
      : list_(std::move(list)), lots_(lots), wrong_(wrong), ended_(list_.size(), 0), times_(list_.size()) {}

  /// Only when the compute queue has nothing left does the list grow, by up to so many.
  Play& as_a_run_does(std::size_t longest) {
    longest_ = longest;
    return *this;
  }
  /// How often an action began before one that surely ends before it in the whole list, or did not begin
  /// though all that it comes after had ended.
  int mistakes(const EndedBefore* before) {
    while (ended_count_ < list_.size()) {
      const bool may_grow = next_ < list_.size() && (longest_ == 0 || script_.cursors.compute.is_over());
      bool moved = may_grow && (longest_ > 0 || lots_.below(12) == 0) && grow();
      std::vector<Cursors::Line*> lines{&script_.cursors.compute};
      for (Cursors::Line& line : script_.cursors.others) lines.push_back(&line);
      for (Cursors::Line* line : lines)
        if (lots_.below(2) == 0) moved = turn(*line, before) || moved;
      stood_still_ = moved ? 0 : stood_still_ + 1;
      if (stood_still_ < 200) continue;
      if (!may_grow) return mistakes_ + 1;  // it never ends
      grow();
    }
    return mistakes_;
  }
  Script& script() { return script_; }
  std::function<void()> grown = [] {};

  /// What the recorder holds is when the actions of the list ran that have begun.
  void expect_times() const {
    const Recorder& recorder = script_.recorder;
    for (std::size_t i = 0; i < script_.list.size(); ++i) {
      const Recorder::Times& times = times_[static_cast<std::size_t>(script_.dropped) + i];
      EXPECT_EQ(recorder.times(0, i).start, times.start);
      EXPECT_EQ(recorder.times(0, i).end, times.end);
    }
  }

 private:
  bool grow() {
    const std::size_t length = longest_ > 0 ? 1 + lots_.below(longest_) : lots_.length(),
                      last = std::min(list_.size(), next_ + length);
    if (next_ > 0) expect_times();
    script_.extend(Unproved::taken(cut_out(list_, next_, last, wrong_)));
    next_ = last;
    grown();
    return true;
  }
  bool turn(Cursors::Line& line, const EndedBefore* before) {
    const int index = line.head();
    if (index < 0) return false;
    const auto number = static_cast<std::size_t>(script_.dropped + index);
    if (bool& begun = begun_[line.key]; begun) {
      begun = false;
      ended_[number] = script_.cursors.ended[index] = 1;
      ++line.next;
      ++ended_count_;
      script_.recorder.end(index, times_[number].end = ++clock_);
      return true;
    }
    const std::vector<int>& after = list_[number].after;
    const bool may = std::all_of(after.begin(), after.end(), [&](int i) { return ended_[i] != 0; });
    if (!script_.cursors.may_start(script_.list[index])) {
      mistakes_ += may ? 1 : 0;
      return false;
    }
    if (before != nullptr)
      for (std::size_t earlier = 0; earlier < number; ++earlier)
        mistakes_ += ended_[earlier] == 0 && (*before)(static_cast<int>(earlier), static_cast<int>(number));
    script_.recorder.start(index, times_[number].start = ++clock_);
    return begun_[line.key] = true;
  }

  std::vector<Action> list_;
  StretchLots& lots_;
  int wrong_;
  Memory memory_{Memory::Kind::host};
  PlainBackend backend_{memory_};
  Script script_{Outline{}, nullptr, backend_, {}};
  std::vector<char> ended_;
  std::vector<Recorder::Times> times_;
  std::map<QueueKey, bool> begun_;
  std::size_t next_ = 0, ended_count_ = 0, longest_ = 0;
  std::int64_t clock_ = 0;
  int mistakes_ = 0, stood_still_ = 0;
};

int mistakes_of(const std::vector<Action>& list, StretchLots& lots, int wrong = 0) {
  const EndedBefore before(list);
  try {
    return Play(list, lots, wrong).mistakes(&before);
  } catch (const Error&) {
    return 1;
  }
}

TEST(GrowingScript, KeepsTheOrderOfTheWholeListWhereverItIsCut) {
  for (int draw = 0; draw < 300; ++draw) {
    StretchLots lots(draw, 30);
    const std::vector<Action> list = list_drawn(lots, 90);
    EXPECT_EQ(mistakes_of(list, lots), 0) << draw;
  }
}

TEST(GrowingScript, KeepsTheOrderOfStepsOfEverySchedule) {
  for (const std::string& schedule : all_schedules()) {
    const Outline outline = with_everything(equal_stages_for(schedule, 3, 6));
    const PlannedStep step = make_program(outline, schedule);
    for (int rank = 0; rank < outline.stages; ++rank) {
      StretchLots lots(rank, step.program.ranks[rank].size() / 2);
      EXPECT_EQ(mistakes_of(without_end(step.program.ranks[rank], 3, true), lots), 0) << schedule;
    }
  }
}

TEST(GrowingScript, NumbersAcrossACutThatAreOffByOneAreNoticed) {
  for (int wrong : {-1, 1}) {
    int noticed = 0;
    for (int draw = 0; draw < 100; ++draw) {
      StretchLots lots(draw, 30);
      const std::vector<Action> list = list_drawn(lots, 90);
      noticed += mistakes_of(list, lots, wrong) > 0 ? 1 : 0;
    }
    EXPECT_GT(noticed, 95) << "of 100";
  }
}

TEST(GrowingScript, ATraceHasTheTimesOfTheLastStretches) {
  for (int draw = 0; draw < 50; ++draw) {
    StretchLots lots(draw, 30);
    Play play(list_drawn(lots, 200), lots);
    ASSERT_EQ(play.mistakes(nullptr), 0);
    play.expect_times();
  }
}

TEST(GrowingScript, HoldsNoMoreAfterAThousandStretchesThanAfterAHundred) {
  constexpr std::size_t longest = 40;
  StretchLots lots(0, longest);
  std::vector<Action> list;
  for (int round = 0; round < 8000; ++round) {  // each buffer of two is written, sent and written again
    Action write = action_of(ActionKind::forward), carry = action_of(ActionKind::send),
           add = action_of(ActionKind::reduce);
    carry.payload = Payload::activation;
    if (round >= 2) write.after = {3 * (round - 2) + 1, 3 * (round - 2) + 2};
    carry.after = add.after = {3 * round};
    list.insert(list.end(), {write, carry, add});
  }
  Play play(list, lots);
  struct Size {
    std::size_t list = 0, ended = 0, queue = 0, room = 0;
    auto operator<=>(const Size&) const = default;
  };
  std::vector<Size> sizes;
  play.as_a_run_does(longest).grown = [&] {
    Script& script = play.script();
    std::size_t queue = script.cursors.compute.actions.size();
    for (const Cursors::Line& line : script.cursors.others) queue = std::max(queue, line.actions.size());
    sizes.push_back({script.list.size(), script.cursors.ended.size(), queue, script.recorder.capacity()});
  };
  EXPECT_EQ(play.mistakes(nullptr), 0);
  ASSERT_GT(sizes.size(), 1000u);
  for (const Size& size : sizes) {
    EXPECT_LE(size.list, longest + 9) << "a stretch, and three rounds that are open";
    EXPECT_EQ(size.ended, size.list);
    EXPECT_LE(size.queue, size.list);
  }
  EXPECT_EQ(sizes[100].room, sizes.back().room);
  EXPECT_LE(sizes.back().room, 16 * longest);
  play.expect_times();
}

/// What a pass and a sum behind two passes come after, if that is number `after` of their stretch.
std::vector<int> grown_after(int after) {
  Memory memory(Memory::Kind::host);
  PlainBackend backend(memory);
  Script script(Outline{}, nullptr, backend, {});
  Action pass = action_of(ActionKind::forward), reduce = action_of(ActionKind::reduce);
  script.extend(Unproved::taken({{pass, pass}, {}}));
  reduce.after = {after};
  script.extend(Unproved::taken({{pass, reduce, pass}, {}}));
  return script.list[3].after;
}

TEST(GrowingScript, RefusesWhatComesAfterItselfOrBeforeTheBeginning) {
  for (int after : {-3, 1, 2}) EXPECT_THROW(grown_after(after), Error) << after;
  for (int after : {-2, -1, 0}) EXPECT_EQ(grown_after(after), std::vector<int>{2 + after});
}

TEST(GrowingScript, TakesOnlyWhatTheCheckerHasMade) {
  static_assert(!std::is_constructible_v<CheckedStretch, ListStretch>);
  static_assert(!std::is_invocable_v<decltype(&Script::extend), Script&, ListStretch>);
  const Outline outline = equal_stages(2, 2);
  const PlannedStep step = make_program(outline, "1f1b");
  ListStretch list{step.program.ranks[1], {}};
  EXPECT_EQ(prove_list(list, outline, 1).actions(), list.actions);
  const auto receive = std::find_if(list.actions.begin(), list.actions.end(),
                                    [](const Action& action) { return action.to_buffer >= 0; });
  receive->to_buffer += 1;
  EXPECT_THROW(prove_list(list, outline, 1), Error);
}

TEST(GrowingScript, AClosedListIsRunAgainAndDoesNotGoOn) {
  Memory memory(Memory::Kind::host);
  PlainBackend backend(memory);
  const Action pass = action_of(ActionKind::forward);
  Script closed(Outline{}, nullptr, backend, {.closed = true, .at_once = 1});
  closed.extend(Unproved::taken({{pass}, {}}));
  EXPECT_THROW(closed.extend(Unproved::taken({{pass}, {}})), Error);
  for (int step = 5; step < 7; ++step) {
    closed.again(step);
    EXPECT_EQ(closed.cursors.compute_head(), 0);
    EXPECT_EQ(closed.recorder.first_held_step(), 5);
    closed.cursors.ended[0] = 1;
    ++closed.cursors.compute.next;
    EXPECT_TRUE(closed.cursors.is_over());
  }
  Script open(Outline{}, nullptr, backend, {});
  EXPECT_THROW(open.again(0), Error);
}

}  // namespace
}  // namespace mindpipe
