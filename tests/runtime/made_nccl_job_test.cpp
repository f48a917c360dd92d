// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "comm/made_nccl/made_nccl.h"
#include "comm/watchdog.h"
#include "runtime/late_device.h"
#include "runtime/parity.h"

// A job whose NCCL reports an error in the background ends with its sentence.
namespace mindpipe {
namespace {

using ::testing::HasSubstr;

/// Body of the ranks of the next test: rank 1 loses sight of the other in step 3.
TEST(MadeNcclChild, LosesARank) {
  if (std::getenv("MINDPIPE_MADE_NCCL_CHILD") == nullptr) GTEST_SKIP() << "runs inside the test below only";
  int argc = 0;
  char** argv = nullptr;
  MpiSession session(argc, argv);
  Config config = tiny(Style::gpt2, 1, 2);
  config.grid.data = session.size();
  config = resolve(config);
  Watchdog watchdog(session.rank());
  LateDevice late(carried_by_nccl);
  Worker worker(config, {session.world(), session.rank(), session.size()}, make_run_plan(config), late.make,
                late.connect, &watchdog);
  share_processors(worker);
  late.go_on_in_waits(worker);
  watchdog.arm(60, "step 3", "watchdog.step");
  Outcome outcome;
  train_some(worker, 50, outcome, [&](int step) {
    if (step != 3 || session.rank() != 1) return;
    made_nccl::lose_a_rank();
    std::this_thread::sleep_for(
        std::chrono::seconds(20));  // a rank that computes does not see it: its watchdog does
  });
}

TEST(MadeNccl, AnErrorInTheBackgroundEndsTheJobWith76AndItsSentence) {
  const std::string log = ::testing::TempDir() + "made_nccl_job.log";
  const std::string command = fmt::format(
      "MINDPIPE_MADE_NCCL_CHILD=1 timeout -k 1 40 {}/tests/run_mpi.sh 2 {} --gtest_filter='MadeNcclChild.*' "
      ">{} 2>&1",
      MINDPIPE_SOURCE_DIR, std::filesystem::read_symlink("/proc/self/exe").string(), log);
  const int status = std::system(command.c_str());
  std::ifstream in(log);
  const std::string said{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(WEXITSTATUS(status), 76) << said;
  EXPECT_THAT(said, HasSubstr("mindpipe-train: rank 1 on "));
  EXPECT_THAT(said, HasSubstr("in step 3: nccl: what goes on in the background for "));
  EXPECT_THAT(said, HasSubstr("answered 'remote process exited or there was a network error'"));
  EXPECT_THAT(said, HasSubstr("start again from the last checkpoint; the job ends with exit code 76"));
  std::filesystem::remove(log);
}

}  // namespace
}  // namespace mindpipe
