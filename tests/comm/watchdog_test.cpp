#include "comm/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Watchdog, IsSilentWhileItIsFedOrNotArmed) {
  Watchdog watchdog(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  watchdog.arm(0.5, "step 1");
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    watchdog.feed();
  }
  watchdog.disarm();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
}

TEST(WatchdogDeathTest, EndsTheProcessWithASentenceWhenNothingMoves) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string log = ::testing::TempDir() + "watchdog_test.log";
  std::filesystem::remove(log);
  EXPECT_EXIT(
      {
        Watchdog watchdog(3, log);
        watchdog.arm(0.1, "step 7");
        watchdog.waits_for("a receive from rank 2");
        std::this_thread::sleep_for(std::chrono::seconds(20));
      },
      ::testing::ExitedWithCode(81), "watchdog: rank 3 on .* made no progress for 0.[0-9] s \\(limit 0.1 s\\) in step 7; it has waited 0.[0-9] s for a receive from rank 2");
  EXPECT_THAT(contents(log), HasSubstr("rank 3"));
  std::filesystem::remove(log);
}

/// What the ranks of the next test run: rank 1 stops itself, and rank 0 waits for it.
TEST(WatchdogChild, WaitsForARankThatHasStopped) {
  if (std::getenv("MINDPIPE_WATCHDOG_CHILD") == nullptr) GTEST_SKIP() << "runs inside the test below only";
  int argc = 0;
  char** argv = nullptr;
  MpiSession session(argc, argv);
  Watchdog watchdog(session.rank());
  Waiting waiting;
  waiting.set_watchdog(&watchdog);
  waiting.set_crowded(true);
  watchdog.arm(10, "start");
  Memory memory(Memory::Kind::host);
  PlainBackend backend(memory);
  Communicator group(backend, std::make_unique<Group>(session.world(), waiting), 2, Axis::tensor);
  Block block({1000}, DType::f32);
  group.sum(block.tensor, block.tensor);
  watchdog.arm(1.0, "step 2");
  if (session.rank() == 1) std::raise(SIGSTOP);
  group.sum(block.tensor, block.tensor);
}

TEST(Watchdog, AStoppedPeerEndsTheJobWith81WithinTheLimit) {
  const std::string log = ::testing::TempDir() + "watchdog_job.log";
  const std::string command = fmt::format("MINDPIPE_WATCHDOG_CHILD=1 timeout -k 1 40 {}/tests/run_mpi.sh 2 {} --gtest_filter='WatchdogChild.*' >{} 2>&1", MINDPIPE_SOURCE_DIR,
                                          std::filesystem::read_symlink("/proc/self/exe").string(), log);
  const std::int64_t start = now_ns();
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 81) << contents(log);
  EXPECT_LT(seconds_since(start), 20) << contents(log);
  EXPECT_THAT(contents(log), HasSubstr("watchdog: rank 0 on "));
  EXPECT_THAT(contents(log), HasSubstr("in step 2; it has waited "));
  EXPECT_THAT(contents(log), HasSubstr("for tensor.sum number 2 as rank 0 of 2; ending the job with exit code 81"));
  std::filesystem::remove(log);
}

}  // namespace
}  // namespace mindpipe
