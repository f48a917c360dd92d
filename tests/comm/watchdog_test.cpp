#include "comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "comm/communicator.h"
#include "comm/group.h"
#include "core/clock.h"
#include "tree.h"

namespace mindpipe {
namespace {

using ::testing::HasSubstr;

std::string contents(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Watchdog, IsSilentWhileStepsFollowOneAnotherOrItIsNotArmed) {
  Watchdog watchdog(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int step = 1; step <= 10; ++step) {
    watchdog.arm(0.5, "step " + std::to_string(step), "watchdog.step");
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  }
  watchdog.disarm();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
}

TEST(WatchdogDeathTest, TakesAShortWaitForWork) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Watchdog watchdog(3);
        watchdog.arm(0.5, "step 7", "watchdog.step");
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        watchdog.begin_wait("tensor.sum: nothing from rank 2 yet", now_ns());
        std::this_thread::sleep_for(std::chrono::seconds(20));
      },
      ::testing::ExitedWithCode(81),
      "rank 3 on .* is in no long wait: 0.[0-9] s so far for tensor.sum: nothing from rank 2 yet");
}

TEST(WatchdogDeathTest, EndsTheProcessWithASentenceWhenNothingMoves) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Watchdog watchdog(3);
        watchdog.arm(0.1, "step 7", "watchdog.step");
        watchdog.begin_wait("tensor.sum: nothing from rank 2 yet", now_ns());
        std::this_thread::sleep_for(std::chrono::seconds(20));
      },
      ::testing::ExitedWithCode(81),
      "mindpipe-train: watchdog: step 7 has taken 0.[0-9] s \\(limit 0.1 s, watchdog.step\\): rank 3 on .* "
      "has waited 0.[0-9] s "
      "for tensor.sum: nothing from rank 2 yet; the job ends with exit code 81");
}

TEST(WatchdogDeathTest, EndsTheProcessWhenSomethingHasGoneWrongInTheBackground) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Watchdog watchdog(2);
        watchdog.ask(
            [calls = 0]() mutable { return std::string(++calls < 2 ? "" : "nccl: the other end is gone"); });
        watchdog.arm(100, "step 7", "watchdog.step");
        std::this_thread::sleep_for(std::chrono::seconds(20));
      },
      ::testing::ExitedWithCode(76),
      "mindpipe-train: rank 2 on .*, in step 7: nccl: the other end is gone; the job ends with exit code 76");
}

TEST(WatchdogDeathTest, CallsTheRollWhereTheRanksShareADirectory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) /
      "watchdog_roll";  // the same for the child, which begins this test again
  EXPECT_EXIT(
      {
        Watchdog watchdog(0);
        watchdog.call_roll_in(directory.string(), {" on alder", " on birch"});
        watchdog.arm(0.1, "step 7", "watchdog.step");
        std::this_thread::sleep_for(std::chrono::seconds(20));
      },
      ::testing::ExitedWithCode(81),
      "rank 1 on birch does not answer .*; rank 0 on .* is in no wait.*what each rank waited for: "
      ".*watchdog-\\*.txt");
  EXPECT_THAT(contents((directory / "watchdog-0.txt").string()), HasSubstr("rank 0 on "));
  std::filesystem::remove_all(directory);
}

/// Body of the ranks of the next test: rank 1 stops itself, and rank 0 waits for it.
TEST(WatchdogChild, WaitsForARankThatHasStopped) {
  if (std::getenv("MINDPIPE_WATCHDOG_CHILD") == nullptr) GTEST_SKIP() << "runs inside the test below only";
  int argc = 0;
  char** argv = nullptr;
  MpiSession session(argc, argv);
  Watchdog watchdog(session.rank());
  Waiting waiting;
  waiting.set_watchdog(&watchdog);
  waiting.set_crowded(true);
  watchdog.arm(10, "start", "watchdog.start");
  Memory memory(Memory::Kind::host);
  PlainBackend backend(memory);
  Communicator group(backend, std::make_unique<Group>(session.world(), waiting), 2, Axis::tensor);
  Block block({1000}, DType::f32);
  group.sum(block.tensor, block.tensor);
  watchdog.arm(1.0, "step 2", "watchdog.step");
  if (session.rank() == 1) std::raise(SIGSTOP);
  group.sum(block.tensor, block.tensor);
}

TEST(Watchdog, AStoppedPeerEndsTheJobWith81WithinTheLimit) {
  const std::string log = ::testing::TempDir() + "watchdog_job.log";
  const std::string command = fmt::format(
      "MINDPIPE_WATCHDOG_CHILD=1 timeout -k 1 40 {}/tests/run_mpi.sh 2 {} --gtest_filter='WatchdogChild.*' "
      ">{} 2>&1",
      MINDPIPE_SOURCE_DIR, std::filesystem::read_symlink("/proc/self/exe").string(), log);
  const std::int64_t start = now_ns();
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 81) << contents(log);
  EXPECT_LT(seconds_since(start), 20) << contents(log);
  EXPECT_THAT(contents(log), HasSubstr("watchdog: step 2 has taken "));
  EXPECT_THAT(
      contents(log),
      HasSubstr(" s for tensor.sum number 2: nothing from rank 1 yet; the job ends with exit code 81"));
  std::filesystem::remove(log);
}

}  // namespace
}  // namespace mindpipe
