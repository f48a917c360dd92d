#include "runtime/late_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/plain_backend.h"
#include "late_backend.h"

namespace mindpipe {
namespace {

/// A device that is behind its host, and a host that asks for numbers 0, 1, 2, ... of it.
class LateAnswersOfADevice : public testing::Test {
 protected:
  void SetUp() override {
    device_.on_halt([this](const std::string&) { ++looks_; });
  }
  void ask(int count) {
    for (; count > 0; --count, ++asked_) {
      source_.push_back(static_cast<double>(asked_));
      device_.copy({&source_.back(), {1}, DType::f64}, number_);
      answers_.ask({&number_, 1}, [this](std::span<const double> known) { heard_.push_back(known[0]); });
    }
  }
  static std::vector<double> first(int count) {
    std::vector<double> numbers(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = i;
    return numbers;
  }

  Memory memory_{Memory::Kind::host}, pinned_{Memory::Kind::host};
  LateBackend device_{std::make_unique<PlainBackend>(memory_), 0};
  Waiting waiting_;
  double on_device_ = 0;
  Tensor number_{&on_device_, {1}, DType::f64};
  LateAnswers answers_{device_, waiting_, &pinned_, 1};
  std::deque<double> source_;
  std::vector<double> heard_;
  int asked_ = 0, looks_ = 0;
};

TEST_F(LateAnswersOfADevice, AreAskedForWithoutALookUnlessTooManyAreOpen) {
  constexpr int most = LateAnswers::most_open;
  ask(most);
  EXPECT_EQ(looks_, 0);
  EXPECT_THAT(heard_, testing::IsEmpty());
  ask(1);
  EXPECT_GT(looks_, 0);
  EXPECT_EQ(heard_, first(1)) << "the oldest alone is waited for";
  answers_.settle();
  EXPECT_EQ(heard_, first(most + 1));
}

TEST_F(LateAnswersOfADevice, AreSettledInOrderButForTheNewest) {
  ask(3);
  device_.synchronize();
  answers_.settle(1);
  EXPECT_EQ(heard_, first(2)) << "though the newest is known, too";
  answers_.settle();
  EXPECT_EQ(heard_, first(3));
}

TEST_F(LateAnswersOfADevice, AreToldInOrderAsTheDeviceComesToThem) {
  ask(5);
  std::size_t before = 0;
  for (int turn = 0; turn < 100 && heard_.size() < 5; ++turn) {
    answers_.progress();
    EXPECT_GE(heard_.size(), before);
    EXPECT_EQ(heard_, first(static_cast<int>(heard_.size())));
    before = heard_.size();
  }
  EXPECT_EQ(heard_.size(), 5u);
}

}  // namespace
}  // namespace mindpipe
