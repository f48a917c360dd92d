#include "trace/kept_actions.h"

#include <gtest/gtest.h>

namespace mindpipe {
namespace {

constexpr std::int64_t shown = 3, window = 4;

/// The list of a rank, on which subnets run one after the other, each a forward, its message and a backward,
/// and each window ends with an update. The message of a subnet ends with the pass of the next one.
class GrowingList {
 public:
  explicit GrowingList(std::int64_t subnets = shown) : kept_(subnets, window, 1) {}

  /// Runs so many subnets more; with `last` to the end.
  void run(std::int64_t subnets, bool last) {
    known_ += subnets;
    hear();
    grow(subnets);
    for (; runs_ < list_.size(); ++runs_) run_one(list_[runs_], static_cast<int>(runs_));
    ended_ = last ? list_.size() : static_cast<std::size_t>(message_);
    if (last) hear();
  }
  const KeptActions& kept() const { return kept_; }

 private:
  void hear() { kept_.hear(list_, dropped_, ended_, recorder_, known_); }
  void grow(std::int64_t subnets) {
    list_.erase(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(ended_));
    for (Action& action : list_)
      for (int& earlier : action.after) earlier -= static_cast<int>(ended_);
    dropped_ += static_cast<std::int64_t>(ended_);
    runs_ -= ended_;
    const std::size_t before = list_.size();
    for (std::int64_t subnet = known_ - subnets; subnet < known_; ++subnet) {
      add(ActionKind::forward, {Owner::subnet, subnet});
      const int forward = static_cast<int>(list_.size()) - 1;
      add(ActionKind::send, {Owner::subnet, subnet}).after = {forward};
      add(ActionKind::backward, {Owner::subnet, subnet});
      if ((subnet + 1) % window == 0) add(ActionKind::update, {Owner::window, subnet / window}).unit = 9;
    }
    recorder_.grow(list_.size() - before, ended_);
    ended_ = 0;
  }
  Action& add(ActionKind kind, const Owner& owner) {
    Action& action = list_.emplace_back(action_of(kind));
    action.owner = owner;
    return action;
  }
  /// A forward takes 100, a backward 200, and each has two sums.
  void run_one(const Action& action, int index) {
    if (is_message(action)) message_ = index;
    recorder_.start(index, clock_);
    const std::int64_t time = action.kind == ActionKind::forward ? 100 : 200;
    if (!is_message(action)) kept_.see({{static_cast<int>(action.owner.number), clock_}}, {});
    for (int sum = 0; is_pass(action) && sum < 2; ++sum)
      recorder_.add({"sum", clock_ + 10 * sum, clock_ + 10 * sum + 5, action.owner.number, index});
    recorder_.end(index, clock_ += time);
  }

  KeptActions kept_;
  Recorder recorder_;
  std::vector<Action> list_;
  std::size_t runs_ = 0, ended_ = 0;
  std::int64_t dropped_ = 0, known_ = 0, clock_ = 1;
  int message_ = 0;
};

TEST(KeptActions, AreThoseOfTheLastSubnetsHoweverTheListGrew) {
  for (const std::int64_t length : {1, 2, 3, 8, 16}) {
    GrowingList list;
    for (std::int64_t subnet = 0; subnet < 48; subnet += length) list.run(length, subnet + length == 48);
    const std::vector<KeptAction>& actions = list.kept().actions();
    ASSERT_EQ(actions.size(), shown * 3 + 1) << length;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const KeptAction& kept = actions[i];
      EXPECT_EQ(kept.place, 48 * 3 + 12 - std::ssize(actions) + static_cast<std::int64_t>(i));
      EXPECT_EQ(kept.action.owner.number, i == 9 ? 11 : 45 + static_cast<std::int64_t>(i) / 3);
      if (is_message(kept.action)) {
        EXPECT_EQ(kept.action.after, std::vector<int>{1}) << "one place before it";
        continue;
      }
      ASSERT_EQ(kept.units.size(), 1u);
      EXPECT_EQ(kept.units[0].unit, kept.action.owner.number);
      EXPECT_EQ(kept.units[0].version, kept.times.start);
    }
  }
}

TEST(KeptActions, HoldSumsOfTheseSubnetsAndNoMoreInALongRun) {
  for (const std::int64_t length : {1, 8, 16}) {
    GrowingList list;
    for (std::int64_t subnet = 0; subnet < 4800; subnet += length) {
      list.run(length, subnet + length == 4800);
      ASSERT_LE(list.kept().sums().size(), 4 * shown) << length;
      ASSERT_LE(list.kept().actions().size(), 4 * shown) << length;
    }
    ASSERT_EQ(list.kept().sums().size(), 4 * shown) << length;
    for (std::size_t i = 0; i < 4 * shown; ++i)
      EXPECT_EQ(list.kept().sums()[i].sum.bytes, 4797 + static_cast<std::int64_t>(i) / 4);
  }
}

TEST(KeptActions, KnowHowLongThePassesOfMoreSubnetsTook) {
  for (const std::int64_t subnets : {std::int64_t{0}, shown}) {
    GrowingList list(subnets);
    for (int stretch = 0; stretch < 20; ++stretch) list.run(16, stretch == 19);
    EXPECT_EQ(list.kept().actions().empty(), subnets == 0);
    EXPECT_EQ(list.kept().sums().empty(), subnets == 0);
    std::vector<bool> is_there(320);
    for (const SubnetTimes& times : list.kept().pass_times().rows()) {
      ASSERT_GE(times.subnet, 0);
      EXPECT_EQ(times.forward, 100);
      EXPECT_EQ(times.backward, 200);
      is_there[static_cast<std::size_t>(times.subnet)] = true;
    }
    for (std::size_t subnet = 320 - PassTimes::most; subnet < 320; ++subnet) EXPECT_TRUE(is_there[subnet]);
  }
}

}  // namespace
}  // namespace mindpipe
