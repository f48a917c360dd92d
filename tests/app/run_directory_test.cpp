#include "app/run/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/run/run_lock.h"
#include "app/train/stop_request.h"
#include "config/config.h"
#include "core/check.h"
#include "core/terminate.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RunDirectories : public testing::Test {
 protected:
  RunDirectories() : dir_(fs::temp_directory_path() / ("mindpipe_run_" + std::to_string(getpid()))) {
    fs::remove_all(dir_);
  }
  ~RunDirectories() override { fs::remove_all(dir_); }
  std::string path(const std::string& name) const { return dir_ / name; }

  std::string complaint(const std::string& directory, Exit code = Exit::cannot_create) const {
    try {
      RunDirectory run(directory);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, code);
      return error.what();
    }
    return "accepted";
  }

  fs::path dir_;
};

TEST_F(RunDirectories, SayThatARunWasEmulated) {
  RunDirectory run(dir_, true);
  run.write_status({"done", 3, "", ""});
  EXPECT_EQ(
      text_of(run.path_of("status.json")),
      "{\"state\": \"done\", \"step\": 3, \"reason\": \"\", \"checkpoint\": \"\", \"emulated\": true}\n");
}

TEST_F(RunDirectories, HoldConfigurationStatusAndMetrics) {
  Config config;
  config.run.dir = dir_;
  config.data.train = {{"corpus", 1}};
  config = resolve(config);
  RunDirectory run(dir_ / "a" / "b");
  run.write_config(config);
  EXPECT_EQ(read_config(run.path_of("config.yaml"), {}), config);

  run.write_status({"running", 3, "", ""});
  run.write_status({"stopped", 4, "SIGUSR1", "checkpoints/step-4"});
  EXPECT_EQ(text_of(run.path_of("status.json")),
            "{\"state\": \"stopped\", \"step\": 4, \"reason\": \"SIGUSR1\", \"checkpoint\": "
            "\"checkpoints/step-4\"}\n");

  run.append_metrics(
      JsonLine().add("step", 1).add("loss", 0.1).add("norm", 0.1f).add("rate", 3e-4).add("bad", 0.0 / 0.0));
  run.append_metrics(JsonLine().add("step", 2).add("name", "a\"\\\n\x01\x1f"));
  const std::string metrics = text_of(run.path_of("metrics.jsonl"));
  EXPECT_EQ(
      metrics,
      "{\"step\": 1, \"loss\": 0.1, \"norm\": 0.1, \"rate\": 3e-04, \"bad\": null}\n{\"step\": 2, \"name\": "
      "\"a\\\"\\\\\\u000a\\u0001\\u001f\"}\n");
  EXPECT_EQ(nlohmann::json::parse(metrics.substr(metrics.find('\n') + 1))["name"], "a\"\\\n\x01\x1f");
  for (const auto& entry : fs::directory_iterator(run.path()))
    EXPECT_THAT(entry.path().string(), testing::Not(HasSubstr("partial")));
}

TEST_F(RunDirectories, ForgetTheMetricsBehindTheStepThatIsResumed) {
  RunDirectory run(dir_);
  for (int step = 1; step <= 5; ++step) run.append_metrics(JsonLine().add("step", step));
  std::ofstream(path("metrics.jsonl"), std::ios::app) << "{\"step\": 6, \"lo";
  run.keep_metrics_through(3, true);
  run.append_metrics(JsonLine().add("step", 4));
  EXPECT_EQ(text_of(path("metrics.jsonl")), "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n{\"step\": 4}\n");
  std::ofstream(path("metrics.jsonl"), std::ios::app)
      << "{\"step\": 5}";  // whole, but its end of line never came
  run.keep_metrics_through(9, true);
  EXPECT_EQ(text_of(path("metrics.jsonl")), "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n{\"step\": 4}\n");
}

TEST_F(RunDirectories, KeepWhatWasLeftOutBehindStepsThatWereGoneBackToBefore) {
  RunDirectory run(dir_);
  const auto add = [&](int step, bool left_out) {
    JsonLine line;
    line.add("step", step);
    run.append_metrics(left_out ? line.add("left_out_from", 8) : line.add("loss", 0.5));
  };
  for (int step : {1, 2}) add(step, false);
  add(2, true);
  for (int step : {3, 4}) add(step, false);
  add(4, true);
  const std::string kept =
      "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"loss\": 0.5}\n{\"step\": 2, \"left_out_from\": 8}\n"
      "{\"step\": 3, \"loss\": 0.5}\n{\"step\": 4, \"loss\": 0.5}\n";
  run.keep_metrics_through(4, true);
  EXPECT_EQ(text_of(path("metrics.jsonl")), kept) << "a checkpoint of step 4 does not know of the last line";
}

TEST_F(RunDirectories, RefuseASecondJob) {
  RunDirectory run(dir_);
  const pid_t child = fork();
  if (child == 0) {
    const std::string sentence = complaint(dir_);
    const bool right = sentence.find("another job holds this run directory (host ") != std::string::npos &&
                       sentence.find("process " + std::to_string(getppid())) != std::string::npos;
    std::_Exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(RunDirectories, GoOnAfterAJobThatHasEndedButWhoseParentHasNotHeardOfIt) {
  const pid_t child = fork();
  if (child == 0) {
    RunDirectory run(dir_);
    std::_Exit(0);
  }
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_EQ(complaint(dir_), "accepted");
  waitpid(child, nullptr, 0);
}

TEST_F(RunDirectories, GoOnAfterADeadJob) {
  const pid_t child = fork();
  if (child == 0) {
    RunDirectory run(dir_);
    std::_Exit(0);  // no destructor: the lock stays
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(path("lock")));
  { RunDirectory run(dir_); }
  EXPECT_FALSE(fs::exists(path("lock")));
  std::ofstream(path("lock")) << "{\"host\": \"no";  // cut short by a crash
  EXPECT_EQ(complaint(dir_), "accepted");
}

TEST(RunLock, IsJudgedByHostProcessAndJob) {
  const LockHolder us = this_process();
  EXPECT_GT(us.started, 0);
  EXPECT_FALSE(is_gone(us, us));
  LockHolder other = us;
  other.host = "elsewhere";
  EXPECT_FALSE(is_gone(other, us));
  other.job = "17";
  other.restart = "";
  LockHolder requeued = us;
  requeued.job = "17";
  requeued.restart = "1";
  EXPECT_TRUE(is_gone(other, requeued)) << "an earlier turn of the same job";
  requeued.restart = "";
  EXPECT_FALSE(is_gone(other, requeued));
  other = us;
  other.started -= 1;
  EXPECT_TRUE(is_gone(other, us)) << "the same number, another process";
}

TEST_F(RunDirectories, SayWhyTheyCannotBe) {
  EXPECT_THAT(complaint("/proc/nowhere/run"),
              HasSubstr("/proc/nowhere/run: the run directory cannot be created ("));
  fs::create_directories(dir_);
  std::ofstream(path("file")) << "x";
  EXPECT_THAT(complaint(path("file")),
              HasSubstr("the run directory cannot be created (Not a directory; choose another run.dir)"));
}

TEST_F(RunDirectories, ReportAFullDisk) {
  RunDirectory run(dir_);
  fs::remove(path("metrics.jsonl"));
  fs::create_symlink("/dev/full", path("metrics.jsonl"));
  fs::remove(path("lock"));
  RunDirectory again(dir_);
  try {
    again.append_metrics(JsonLine().add("step", 1));
    ADD_FAILURE() << "a full disk went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::io_error);
    EXPECT_THAT(error.what(), HasSubstr("metrics.jsonl: writing failed (No space left on device; make room"));
  }
}

TEST_F(RunDirectories, SayWhyTheJobFailed) {
  const auto fail_in_a_run = [this]() noexcept {
    install_terminate_handler();
    RunDirectory run(dir_);
    run.write_status({"running", 7, "", "checkpoints/step-5"});
    fail(Exit::diverged, "the loss is not finite");
  };
  EXPECT_EXIT(fail_in_a_run(), testing::ExitedWithCode(79), "the loss is not finite");
  EXPECT_EQ(text_of(path("status.json")),
            "{\"state\": \"failed\", \"step\": 7, \"reason\": \"the loss is not finite\", \"checkpoint\": "
            "\"checkpoints/step-5\"}\n");
  EXPECT_FALSE(fs::exists(path("lock")));
}

TEST_F(RunDirectories, SayWhyTheJobFailedAlsoWhereNoNewFileCanBe) {
  const auto fail_in_a_run = [this]() noexcept {
    install_terminate_handler();
    RunDirectory run(dir_);
    run.write_status({"running", 7, std::string(200, 'x'), ""});
    fs::create_directory(
        path("status.json." + std::to_string(getpid()) + ".partial"));  // where the new file would be
    fail(Exit::io_error, "disk full");
  };
  EXPECT_EXIT(fail_in_a_run(), testing::ExitedWithCode(74), "disk full");
  EXPECT_EQ(text_of(path("status.json")),
            "{\"state\": \"failed\", \"step\": 7, \"reason\": \"disk full\", \"checkpoint\": \"\"}\n");
}

TEST_F(RunDirectories, KeepTheFailureOfAnotherRankWhenTheLauncherThenEndsTheHolder) {
  EXPECT_EXIT(
      {
        install_stop_signals();
        RunDirectory run(dir_);
        run.write_status({"running", 7, "", ""});
        if (const pid_t peer = fork(); peer == 0) {
          const PeerStatus status(dir_, false);
          say_last_words(79, "rank 1: the loss is not finite");
          _exit(0);
        } else {
          waitpid(peer, nullptr, 0);
        }
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(75), "");
  EXPECT_EQ(text_of(path("status.json")),
            "{\"state\": \"failed\", \"step\": 7, \"reason\": \"rank 1: the loss is not finite\", "
            "\"checkpoint\": \"\"}\n");
  EXPECT_FALSE(fs::exists(path("lock")));
}

TEST_F(RunDirectories, GoOnWithNoStepAfterTheFailureOfAnotherRankButBeginARunAfterOne) {
  RunDirectory run(dir_);
  const std::string failed =
      "{\"state\": \"failed\", \"step\": 7, \"reason\": \"rank 1: lost\", \"checkpoint\": \"\"}\n";
  std::ofstream(path("status.json")) << failed;  // of the run before
  run.write_status({});
  EXPECT_THAT(text_of(path("status.json")), testing::HasSubstr("running"));
  std::ofstream(path("status.json")) << failed;
  run.write_status({"running", 8, "", ""});
  EXPECT_EQ(text_of(path("status.json")), failed);
}

TEST_F(RunDirectories, HearStop) {
  RunDirectory run(dir_);
  EXPECT_FALSE(run.stop_asked());
  std::ofstream(path("STOP")) << "";
  EXPECT_TRUE(run.stop_asked());
  run.forget_stop();
  EXPECT_FALSE(run.stop_asked());
}

}  // namespace
}  // namespace mindpipe
