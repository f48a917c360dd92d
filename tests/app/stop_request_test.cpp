#include "app/train/stop_request.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/log_mark.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

const auto stopped = testing::ExitedWithCode(75);

TEST(StopRequestDeathTest, BeforeTheFirstStepSigtermEndsAtOnceAndSigusr1IsKeptForTheStep) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP})
    EXPECT_EXIT((install_stop_signals(), std::raise(signal)), stopped,
                "^mindpipe-train: stopped at once by SIG[A-Z]+ before the first step");
  EXPECT_EXIT(
      {
        install_stop_signals();
        std::raise(SIGUSR1);
        std::raise(SIGUSR2);
        std::_Exit(stop_asked() ? 3 : 4);
      },
      testing::ExitedWithCode(3), "^$");
}

TEST(StopRequestDeathTest, WithoutStepsEverySignalEndsAtOnceAlsoOneThatCameBefore) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP})
    EXPECT_EXIT((install_stop_signals(), stop_at_once(), std::raise(signal)), stopped,
                "stopped at once by SIG");
  EXPECT_EXIT((install_stop_signals(), std::raise(SIGUSR1), stop_at_once()), stopped,
              "stopped at once by SIGUSR1\n");
}

TEST(StopRequestDeathTest, AmongStepsTheFirstSignalWaitsForTheStepAndASecondSigtermDoesNot) {
  EXPECT_EXIT(
      {
        install_stop_signals();
        stop_after_step();
        std::raise(SIGTERM);
        std::_Exit(stop_asked() ? 3 : 4);
      },
      testing::ExitedWithCode(3), "SIGTERM: stops after this step");
  EXPECT_EXIT((install_stop_signals(), stop_after_step(), std::raise(SIGUSR1), std::raise(SIGTERM)), stopped,
              "SIGTERM, the second signal");
  EXPECT_EXIT((install_stop_signals(), stop_after_step(), std::raise(SIGUSR1), std::raise(SIGUSR1),
               std::_Exit(stop_asked() ? 3 : 4)),
              testing::ExitedWithCode(3), "")
      << "a batch system may send it to the job and to its step";
}

void launched_as(const char* rank) {
  setenv("OMPI_COMM_WORLD_RANK", rank, 1);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
}

TEST(StopRequestDeathTest, OnlyRankZeroSpeaksAndNobodyOfAnEndThatTheLauncherBrings) {
  EXPECT_EXIT((launched_as("2"), install_stop_signals(), std::raise(SIGINT)), stopped, "^$");
  EXPECT_EXIT((launched_as("0"), install_stop_signals(), std::raise(SIGTERM)), stopped, "^$");
}

TEST(StopRequestDeathTest, AnEndAtOnceLeavesThePreparedStatusAndNoLock) {
  const fs::path root = fs::temp_directory_path() / ("mindpipe_stop_" + std::to_string(getpid()));
  fs::create_directories(root);
  std::ofstream(root / "status.json") << "old";
  std::ofstream(root / "lock") << "held";
  EXPECT_EXIT(
      {
        install_stop_signals();
        leave_at_stop((root / "status.json").string(), "first", "", (root / "lock").string());
        leave_at_stop((root / "status.json").string(), "second", "", (root / "lock").string());
        std::raise(SIGTERM);
      },
      stopped, "");
  std::ostringstream status;
  status << std::ifstream(root / "status.json").rdbuf();
  EXPECT_EQ(status.str(), "second");
  EXPECT_FALSE(fs::exists(root / "lock"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root), {}), 1);
  fs::remove_all(root);
}

TEST(StopRequestDeathTest, ALaunchersSigtermLeavesItsOwnStatusAmongTheStepsAtOnceButNoneThatSaysFailed) {
  const fs::path root = fs::temp_directory_path() / ("mindpipe_launcher_" + std::to_string(getpid()));
  const std::string status = root / "status.json", lock = root / "lock";
  const auto contents = [](const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  const auto prepare = [&](const std::string& before) {
    fs::create_directories(root);
    std::ofstream(status) << before;
    std::ofstream(lock) << "held";
    launched_as("0");
    install_stop_signals();
    leave_at_stop(status, "any signal", "launcher", lock);
  };
  EXPECT_EXIT((prepare("running"), std::raise(SIGTERM)), stopped, "^$");
  EXPECT_EQ(contents(status), "launcher");
  EXPECT_FALSE(fs::exists(lock));
  EXPECT_EXIT(
      (prepare("running"), stop_after_step(), std::raise(SIGINT), std::_Exit(launcher_ends_it() ? 4 : 3)),
      testing::ExitedWithCode(3), "SIGINT");
  EXPECT_EQ(contents(status), "running");
  EXPECT_EXIT(
      (prepare("running"), stop_after_step(), std::raise(SIGTERM), std::_Exit(launcher_ends_it() ? 3 : 4)),
      testing::ExitedWithCode(3), "^$");
  EXPECT_EQ(contents(status), "launcher");
  EXPECT_TRUE(fs::exists(lock)) << "the step goes on, and may end";
  const std::string failed = "{\"state\": \"failed\", \"step\": 1}";
  EXPECT_EXIT((prepare(failed), stop_after_step(), std::raise(SIGTERM), std::_Exit(3)),
              testing::ExitedWithCode(3), "^$");
  EXPECT_EQ(contents(status), failed);
  fs::remove_all(root);
}

TEST(StopRequestDeathTest, WhatItSaysBeginsAsEveryLineOfTheLog) {
  EXPECT_EXIT((launched_as("0"), install_stop_signals(), set_log_mark("injected nan@0:1: "),
               stop_after_step(), std::raise(SIGUSR1), std::_Exit(3)),
              testing::ExitedWithCode(3), "^injected nan@0:1: SIGUSR1: stops after this step");
}

TEST(StopRequest, NobodyHasAskedAtFirst) { EXPECT_FALSE(stop_asked()); }

}  // namespace
}  // namespace mindpipe
