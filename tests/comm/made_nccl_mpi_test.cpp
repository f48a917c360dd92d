// thorough ranks: 2, alone
#include "comm/made_nccl/made_nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "comm/device_transports.h"
#include "comm/plain_backend.h"
#include "comm/waiting.h"
#include "late_backend.h"

// The calls of NCCL transports, over a library that stands in for NCCL: each that is left out, or made in
// another order or outside its group, is noticed.
namespace mindpipe {
namespace {

using ::testing::HasSubstr;
using Parcel = Transport::Parcel;

/// Ways of one rank's job to go wrong, before its transports are made or behind that.
struct Mistake {
  std::function<void()> before = [] {}, once_made = [] {};
};

/// Two ranks that make transports, put messages into several queues, and let go of all.
class Job {
 public:
  explicit Job(Mistake mistake = {}) : mistake_(std::move(mistake)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks_);  // not freed: a job that breaks off leaves messages there
  }

  /// Makes the transports. Whether that went well on both ranks.
  bool make() {
    made_nccl::begin();
    mistake_.before();
    const bool made =
        phase([&] { transports_ = make_nccl_transports(*device_, waiting_); }) &&
        phase([&] { mistake_.once_made(); }) &&
        phase([&] { sums_ = transports_->among(ranks_, Transports::Use::sums, "the sums"); }) &&
        phase([&] { channel_ = transports_->among(ranks_, Transports::Use::channel, "the channel"); });
    made_nccl::close_connections();
    return made;
  }
  void forget_links() {
    sums_.reset();
    channel_.reset();
  }
  /// What one of the two noticed; empty: nothing, and all numbers are right.
  std::string run() {
    const bool made = make();
    for (int round = 0; made && round < 2; ++round)
      if (!phase([&] { exchange(round); })) break;
    phase([&] {
      forget_links();
      MP_CHECK(made_nccl::alive() == 0, "a communicator is left");
    });
    for (int i = 0; i < made_nccl::calls(); ++i) calls_.push_back(made_nccl::call(i));
    made_nccl::begin();
    return noticed_;
  }
  Transports& transports() { return *transports_; }
  Transport& sums() { return *sums_; }
  const std::vector<made_nccl::Call>& calls() const { return calls_; }

 private:
  static constexpr std::size_t short_words = 700, long_words = 20'000;

  /// Whether it went well on both ranks.
  bool phase(const std::function<void()>& work) {
    std::string mine;
    try {
      work();
    } catch (const std::exception& error) {
      mine = error.what();
    }
    int bad = mine.empty() ? 0 : 1, any = 0;
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any != 0 && noticed_.empty()) noticed_ = mine.empty() ? "the other rank" : mine;
    return any == 0;
  }
  static std::vector<int> words(std::size_t count, int rank, int number) {
    std::vector<int> all(count);
    for (std::size_t i = 0; i < count; ++i)
      all[i] = static_cast<int>(i) + 100'000 * rank + 1'000'000 * number;
    return all;
  }
  static Parcel parcel(Parcel::Way way, std::vector<int>& of, int peer) {
    return {way, of.data(), of.size() * sizeof(int), peer};
  }
  /// A short and a long message each way in one group, and one that passes from rank 0 to rank 1 meanwhile.
  void exchange(int round) {
    const int other = 1 - rank_;
    std::vector<int> sent = words(short_words, rank_, round), sent_too = words(long_words, rank_, round + 7),
                     passed(short_words), got(short_words), got_too(long_words);
    if (rank_ == 0) passed = words(short_words, 0, round + 3);
    device_->use_queue(Queue::bulk);
    const Parcel both[] = {parcel(Parcel::Way::send, sent, other), parcel(Parcel::Way::receive, got, other),
                           parcel(Parcel::Way::send, sent_too, other),
                           parcel(Parcel::Way::receive, got_too, other)};
    sums_->put(both);
    device_->use_queue(rank_ == 0 ? Queue::send : Queue::receive);
    const Parcel one[] = {parcel(rank_ == 0 ? Parcel::Way::send : Parcel::Way::receive, passed, other)};
    channel_->put(one);
    device_->use_queue(Queue::compute);
    device_->synchronize();
    MP_CHECK(got == words(short_words, other, round) && got_too == words(long_words, other, round + 7) &&
                 passed == words(short_words, 0, round + 3),
             "other numbers arrived than were sent");
  }

  Mistake mistake_;
  std::string noticed_;
  std::vector<made_nccl::Call> calls_;
  int rank_ = 0;
  MPI_Comm ranks_ = MPI_COMM_NULL;
  Memory memory_{Memory::Kind::host};
  std::unique_ptr<LateBackend> device_ =
      std::make_unique<LateBackend>(std::make_unique<PlainBackend>(memory_), 0);
  Waiting waiting_;
  std::unique_ptr<Transports> transports_;
  std::unique_ptr<Transport> sums_, channel_;
};

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

class MadeNcclMistakes : public ::testing::Test {
 protected:
  static constexpr double long_wait = 60, short_wait = 0.2;
  void SetUp() override { made_nccl::give_up_after(short_wait); }
  void TearDown() override { made_nccl::give_up_after(long_wait); }

  /// What two ranks notice of a mistake on `rank`; -1: on both.
  static std::string noticed(int rank, const std::function<void()>& mistake) {
    Job job({.before = [&] {
      if (rank < 0 || rank == own_rank()) mistake();
    }});
    return job.run();
  }
  /// A number that one rank knows.
  static int told_by(int rank, int answer) {
    MPI_Bcast(&answer, 1, MPI_INT, rank, MPI_COMM_WORLD);
    return answer;
  }
};

TEST(MadeNccl, IsToldHowManyMultiprocessorsEachCommunicatorMayTake) {
  using enum Transports::Use;
  Memory memory{Memory::Kind::host};
  LateBackend device(std::make_unique<PlainBackend>(memory), 0);
  Waiting waiting;
  const auto bounds_with = [&](int reserved) {
    made_nccl::begin();
    const auto transports = make_nccl_transports(device, waiting, reserved);
    std::vector<std::unique_ptr<Transport>> made;
    for (const Transports::Use use : {sums, bulk, scalars, channel})
      made.push_back(transports->among(MPI_COMM_WORLD, use, "ranks"));
    std::vector<int> bounds;
    for (const made_nccl::Bound& bound : made_nccl::bounds()) bounds.push_back(bound.multiprocessors);
    return bounds;
  };
  EXPECT_EQ(bounds_with(0), (std::vector{0, 16, 4, 4}));
  EXPECT_EQ(bounds_with(24), (std::vector{0, 24, 4, 4}));
  EXPECT_EQ(bounds_with(2), (std::vector{0, 2, 2, 2}));
  made_nccl::begin();
}

TEST_F(MadeNcclMistakes, NoneInAJobThatMakesNone) {
  made_nccl::give_up_after(long_wait);
  Job job;
  EXPECT_EQ(job.run(), "");
  EXPECT_GT(job.calls().size(), 20u);
}

TEST_F(MadeNcclMistakes, EveryCallThatOneRankLeavesOutIsNoticed) {
  for (const int rank : {0, 1}) {
    made_nccl::give_up_after(long_wait);
    Job right;
    right.run();
    made_nccl::give_up_after(short_wait);
    const int calls = told_by(rank, static_cast<int>(right.calls().size()));
    for (int i = 0; i < calls; ++i) {
      const std::string said = noticed(rank, [&] { made_nccl::leave_out(i); });
      if (own_rank() == rank) {
        EXPECT_NE(said, "") << "rank " << rank << " leaves out call " << i << ": "
                            << right.calls()[i].function;
      }
    }
  }
}

TEST_F(MadeNcclMistakes, EveryFunctionThatBothRanksLeaveOutIsNoticed) {
  for (const char* function : {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommDestroy",
                               "ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv"})
    EXPECT_NE(noticed(-1, [&] { made_nccl::leave_out_all(function); }), "") << function;
}

/// Whether two calls may be made in either order: messages of one group that do not pass between the same two
/// ranks in one direction, or the only message of a group and the group's beginning or end.
bool are_free(const std::vector<made_nccl::Call>& calls, std::size_t first) {
  const made_nccl::Call &one = calls[first], &then = calls[first + 1];
  const auto is_message = [](const made_nccl::Call& call) { return !call.message.empty(); };
  if (is_message(one) && is_message(then)) return one.group == then.group && one.message != then.message;
  const made_nccl::Call& message = is_message(one) ? one : then;
  if (!is_message(message)) return false;
  return std::count_if(calls.begin(), calls.end(), [&](const made_nccl::Call& call) {
           return is_message(call) && call.group == message.group;
         }) == 1;
}

TEST_F(MadeNcclMistakes, EveryPairOfCallsInTheWrongOrderIsNoticed) {
  made_nccl::give_up_after(long_wait);
  Job right;
  right.run();
  const int calls = told_by(0, static_cast<int>(right.calls().size()));
  int free_ones = 0;
  for (int i = 0; i + 1 < calls; ++i) {
    const bool free =
        told_by(0, own_rank() == 0 && are_free(right.calls(), static_cast<std::size_t>(i)) ? 1 : 0) != 0;
    made_nccl::give_up_after(free ? long_wait : short_wait);
    const bool noticed_it = !noticed(0, [&] { made_nccl::exchange(i); }).empty();
    free_ones += free ? 1 : 0;
    if (own_rank() == 0) {
      EXPECT_NE(noticed_it, free) << "call " << i << ": "
                                  << right.calls()[static_cast<std::size_t>(i)].function << " behind "
                                  << right.calls()[static_cast<std::size_t>(i) + 1].function;
    }
  }
  EXPECT_LT(2 * free_ones, calls);
}

TEST_F(MadeNcclMistakes, SeveralCommunicatorsWithoutTheOrderOfCallsAreNoticed) {
  Job job({.once_made = [] { unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT"); }});
  const std::string said = job.run();
  EXPECT_THAT(said, HasSubstr("several communicators at once without NCCL_LAUNCH_ORDER_IMPLICIT"));
}

/// A job that has lost a rank, as it is told to whoever asks and to whoever goes on.
TEST_F(MadeNcclMistakes, ALostRankIsToldAndItsCommunicatorsAreAborted) {
  for (const bool asks : {true, false}) {
    Job job;
    ASSERT_TRUE(job.make());
    made_nccl::lose_a_rank();
    EXPECT_THAT(
        job.transports().trouble(),
        HasSubstr(
            "nccl: what goes on in the background for the sums answered 'remote process exited or there "
            "was a network error' (a rank of the sums is gone); a rank or the network is gone"));
    std::byte word{};
    const Parcel one[] = {{Parcel::Way::send, &word, 1, 1 - own_rank()}};
    try {
      job.sums().put(one);
      ADD_FAILURE() << "a broken communicator takes messages";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::peer_failed) << error.what();
    }
    if (!asks) made_nccl::leave_out_all("ncclCommGetAsyncError");
    job.forget_links();
    EXPECT_EQ(made_nccl::alive() == 0, asks) << "whoever does not ask destroys what should be aborted";
    made_nccl::begin();
  }
}

}  // namespace
}  // namespace mindpipe
