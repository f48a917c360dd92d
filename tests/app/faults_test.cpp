// thorough
// 3 at a time
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"

// What becomes of a whole job under mpirun: when it ends, and when one of its ranks fails, is stopped or is
// killed in the middle of a run.
namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Asks again and again until it holds or the time is over.
template <class Condition>
bool holds_within(double seconds, Condition condition) {
  const std::int64_t start = now_ns();
  while (!condition()) {
    if (seconds_since(start) > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

/// Four ranks that train for minutes in a directory of their own; nothing of them outlives this object.
class Job {
 public:
  /// In the settings, @ stands for the configuration's file.
  Job(const std::string& name, std::string settings, const std::string& verb = "train")
      : root_(fs::temp_directory_path() / ("mindpipe_faults_" + std::to_string(getpid()) + "_" + name)) {
    fs::create_directories(root_);
    std::ofstream(root_ / "job.yaml")
        << "run: {dir: " << (root_ / "run").string()
        << "}\n"
           "model: {kind: gpt, layers: 1, width: 32, heads: 4, context: 16, vocabulary: 256}\n"
           "data: {train: [" MINDPIPE_SOURCE_DIR
           "/data/alice.txt]}\n"
           "train: {steps: 50000, batch: 4, micro_batch: 1}\n"
           "optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}\n"
           "watchdog: {step: 4s}\n"
           "device: {threads: 1}\n";
    const std::string file = (root_ / "job.yaml").string();
    for (std::size_t at = settings.find('@'); at != std::string::npos; at = settings.find('@'))
      settings.replace(at, 1, file);
    const std::string command = "exec " MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh 4 " MINDPIPE_BINARY " " +
                                verb + " --config " + file + " " + settings + " </dev/null >" +
                                (root_ / "output").string() + " 2>&1";
    launcher_ = fork();
    if (launcher_ == 0) execl("/bin/bash", "bash", "-c", command.c_str(), nullptr);
  }
  ~Job() {
    if (!status_) {
      kill(launcher_, SIGKILL);
      waitpid(launcher_, nullptr, 0);
    }
    for (pid_t process : processes()) kill(process, SIGKILL);
    fs::remove_all(root_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  bool trains() const {
    const std::string metrics = contents(root_ / "run/metrics.jsonl");
    return std::count(metrics.begin(), metrics.end(), '\n') >= 3;
  }
  /// The job's model is there, and its weights are soon.
  bool is_ready() const { return output().find("logical shards: ") != std::string::npos; }
  /// Processes with this job's directory on their command line; the launcher is one of them.
  std::vector<pid_t> processes() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t process = std::atoi(entry.path().filename().c_str());
      if (process > 0 && contents(entry.path() / "cmdline").find(root_.string() + "/") != std::string::npos)
        found.push_back(process);
    }
    return found;
  }
  /// Sends a signal to the processes of a rank; to how many it was sent.
  int signal(int rank, int number) const {
    const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0';
    int sent = 0;
    for (pid_t process : processes())
      if (contents(fs::path("/proc") / std::to_string(process) / "environ").find(variable) !=
          std::string::npos)
        sent += kill(process, number) == 0 ? 1 : 0;
    return sent;
  }
  /// The launcher's exit code once it has ended.
  std::optional<int> exit_code() {
    int status = 0;
    if (!status_ && waitpid(launcher_, &status, WNOHANG) == launcher_) status_ = status;
    if (!status_) return std::nullopt;
    return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
  }
  std::string output() const { return contents(root_ / "output"); }
  fs::path run() const { return root_ / "run"; }

 private:
  fs::path root_;
  pid_t launcher_;
  std::optional<int> status_;
};

struct Case {
  const char *name, *settings;
  int rank;            ///< who is stopped or killed
  const char* waited;  ///< what a rank that waits for it says
};

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A job that has trained some steps and now has lost a rank.
std::unique_ptr<Job> struck(const Case& c, int signal) {
  auto job = std::make_unique<Job>(c.name, c.settings);
  EXPECT_TRUE(holds_within(60, [&] { return job->trains() || job->exit_code(); })) << job->output();
  job->signal(c.rank, signal);
  return job;
}

TEST(Faults, AStoppedRankEndsTheJobWith81AndOneSentenceThatNamesIt) {
  const std::vector<Case> cases{
      {"tensor", "grid.tensor=4", 2, "for tensor\\.[a-z_]+ number [0-9]+: [^\n]*ranks? [^\n]*2"},
      {"data", "grid.data=4", 0, "for (data|reduce|gather)[^\n]*: [^\n]*ranks? [^\n]*0"},
      {"pipeline", "grid.pipeline=4", 3,
       "for (activation|gradient|the gradient|pipeline\\.)[^\n]*ranks? [^\n]*3"},
      {"mixed", "grid.pipeline=2 grid.tensor=2", 1,
       "for (tensor|pipeline|activation|gradient|the gradient)[^\n]*ranks? [^\n]*1"},
  };
  std::vector<std::unique_ptr<Job>> jobs;  // the next one starts while this one waits for its watchdog
  for (const Case& c : cases) jobs.push_back(struck(c, SIGSTOP));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    Job& job = *jobs[i];
    ASSERT_TRUE(holds_within(40, [&] { return job.exit_code().has_value(); })) << job.output();
    const std::string text = job.output();
    const std::string silent = "rank " + std::to_string(cases[i].rank) + " on ";
    EXPECT_EQ(job.exit_code(), 81) << text;
    EXPECT_EQ(occurrences(text, "watchdog:"), 1) << text;
    EXPECT_THAT(text,
                ContainsRegex(
                    "watchdog: step [0-9]+ has taken [4-9]\\.[0-9] s \\(limit 4\\.0 s, watchdog\\.step\\): " +
                    silent + "[^ ]+ \\(process [0-9]+\\) does not answer"));
    EXPECT_THAT(text, ContainsRegex("rank [0-9] on [^ ]+ has waited [3-9]\\.[0-9] s " +
                                    std::string(cases[i].waited)));
    EXPECT_THAT(text, HasSubstr("the job ends with exit code 81"));
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(fs::exists(job.run() / "log" / ("watchdog-" + std::to_string(rank) + ".txt")),
                rank != cases[i].rank);
    const auto status = nlohmann::json::parse(contents(job.run() / "status.json"));
    EXPECT_EQ(status["state"], "failed");
    EXPECT_THAT(status["reason"].get<std::string>(), HasSubstr(silent));
    EXPECT_GT(status["step"], 0);
    EXPECT_TRUE(holds_within(5, [&] { return job.processes().empty(); })) << "processes are left";
  }
}

TEST(Faults, ARankThatStopsWhileTheJobStartsIsNamed) {
  Job job("start", "grid.data=4 watchdog.start=4s");
  const int rank = 2;
  ASSERT_TRUE(holds_within(30, [&] { return job.signal(rank, SIGSTOP) > 0; })) << job.output();
  ASSERT_TRUE(holds_within(40, [&] { return job.exit_code().has_value(); })) << job.output();
  EXPECT_EQ(job.exit_code(), 81) << job.output();
  EXPECT_EQ(occurrences(job.output(), "watchdog:"), 1) << job.output();
  EXPECT_THAT(
      job.output(),
      ContainsRegex(
          "watchdog: start has taken [4-9]\\.[0-9] s \\(limit 4\\.0 s, watchdog\\.start\\): rank 2 (on [^ ]+ "
          "\\(process [0-9]+\\) )?does not answer"));
  EXPECT_THAT(job.output(),
              ContainsRegex("rank [0-9] on [^ ]+ has waited [2-9]\\.[0-9] s for all ranks to "));
  EXPECT_TRUE(holds_within(5, [&] { return job.processes().empty(); })) << "processes are left";
}

constexpr const char* long_evaluation =
    " data.validation=[" MINDPIPE_SOURCE_DIR "/data/alice.txt] watchdog.step=3s train.evaluate_batches=";

/// The job ends with one sentence that names the silent rank; its limit is of one batch, though the
/// evaluation has thousands.
void expect_named(Job& job, int rank, const std::string& phase) {
  ASSERT_TRUE(holds_within(20, [&] { return job.exit_code().has_value(); })) << job.output();
  EXPECT_EQ(job.exit_code(), 81) << job.output();
  EXPECT_EQ(occurrences(job.output(), "watchdog:"), 1) << job.output();
  EXPECT_THAT(job.output(),
              ContainsRegex("watchdog: " + phase +
                            " has taken [3-6]\\.[0-9] s \\(limit 3\\.0 s, watchdog\\.step\\): rank " +
                            std::to_string(rank) + " on [^ ]+ \\(process [0-9]+\\) does not answer"));
}

TEST(Faults, ARankThatStopsDuringAnEvaluationIsNamed) {
  Job job("evaluation", "grid.data=4 train.evaluate_every=1" + std::string(long_evaluation) + "100000");
  ASSERT_TRUE(holds_within(60, [&] { return job.is_ready() || job.exit_code(); })) << job.output();
  std::this_thread::sleep_for(
      std::chrono::seconds(1));  // the first step takes a few milliseconds, the evaluation minutes
  job.signal(3, SIGSTOP);
  expect_named(job, 3, "(batch [0-9]+ of 100000 of the evaluation after )?step 1");
}

TEST(Faults, EvalNamesTheRankThatStops) {
  Job trained("trained", "grid.data=4 train.steps=1");
  ASSERT_TRUE(holds_within(60, [&] { return trained.exit_code().has_value(); })) << trained.output();
  ASSERT_EQ(trained.exit_code(), 0) << trained.output();
  Job job("eval", "grid.pipeline=4 run.dir=" + trained.run().string() + long_evaluation + "100000", "eval");
  ASSERT_TRUE(holds_within(60, [&] { return job.is_ready() || job.exit_code(); })) << job.output();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  job.signal(3, SIGSTOP);
  expect_named(job, 3, "batch [0-9]+ of 100000 of the evaluation");
  EXPECT_TRUE(fs::exists(trained.run() / "log/eval/watchdog-0.txt"))
      << "apart from what a training says in the same directory";
}

TEST(Faults, ARankThatStopsAtTheEndIsNamed) {
  Job job("end",
          "grid.data=5 train.batch=5 train.steps=1 watchdog.start=4s : -np 1 env "
          "LD_PRELOAD=" MINDPIPE_STOPS_AT_THE_END " " MINDPIPE_BINARY
          " train --config @ grid.data=5 train.batch=5 train.steps=1 watchdog.start=4s");
  ASSERT_TRUE(holds_within(60, [&] { return job.exit_code().has_value(); })) << job.output();
  EXPECT_EQ(job.exit_code(), 81) << job.output();
  EXPECT_EQ(occurrences(job.output(), "watchdog:"), 1) << job.output();
  EXPECT_THAT(
      job.output(),
      ContainsRegex(
          "watchdog: end has taken [4-9]\\.[0-9] s \\(limit 4\\.0 s, watchdog\\.start\\): rank 4 on [^ ]+ "
          "\\(process [0-9]+\\) does not answer [^\n]*; rank 0 on [^ ]+ has waited [3-9]\\.[0-9] s for all "
          "ranks "
          "to end \\(MPI_Finalize\\)"));
  EXPECT_EQ(nlohmann::json::parse(contents(job.run() / "status.json"))["state"], "done") << "all was saved";
}

TEST(Faults, AKilledRankEndsTheJobWithinTenSeconds) {
  for (const Case& c : {Case{"tensor", "grid.tensor=4", 1, ""}, Case{"data", "grid.data=4", 3, ""},
                        Case{"pipeline", "grid.pipeline=4", 0, ""}}) {
    SCOPED_TRACE(c.name);
    const auto job = struck(c, SIGKILL);
    EXPECT_TRUE(holds_within(10, [&] { return job->exit_code() && job->processes().empty(); }))
        << job->output();
    EXPECT_EQ(job->exit_code(), 128 + SIGKILL) << job->output();
    EXPECT_THAT(job->output(),
                ContainsRegex("process rank " + std::to_string(c.rank) + " .*exited on signal 9"));
    const auto status = nlohmann::json::parse(contents(job->run() / "status.json"));
    EXPECT_EQ(status["state"], c.rank == 0 ? "running" : "stopped") << "nobody could write for rank 0";
    EXPECT_THAT(status["reason"].get<std::string>(),
                HasSubstr(c.rank == 0 ? "" : "(SIGTERM): a rank was lost, or "));
    EXPECT_GT(status["step"], 0);
  }
}

TEST(Jobs, TheirLedgerTellsTrafficFromWhatIsBroughtTogetherForFiles) {
  Job job("ledger", "grid.pipeline=2 grid.data=2 train.steps=2");
  ASSERT_TRUE(holds_within(60, [&] { return job.exit_code().has_value(); })) << job.output();
  EXPECT_EQ(job.exit_code(), 0) << job.output();
  EXPECT_THAT(job.output(), ContainsRegex("\ntraffic of rank 0\n(.*\n)*pipeline +files +[0-9]+ +[0-9.]+ "));
}

TEST(Jobs, WhatAnEmulatedJobLeavesSaysSo) {
  Job job("emulated",
          "grid.pipeline=2 grid.data=2 train.steps=2 device.kind=emulated device.description=instant");
  ASSERT_TRUE(holds_within(60, [&] { return job.exit_code().has_value(); })) << job.output();
  EXPECT_EQ(job.exit_code(), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("emulated: traffic of rank 0"));
  std::istringstream lines(job.output());
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.empty() || line.starts_with("emulated: ")) << line;
  EXPECT_EQ(nlohmann::json::parse(contents(job.run() / "status.json"))["emulated"], true);
  EXPECT_EQ(nlohmann::json::parse(contents(job.run() / "trace.json"))["otherData"]["device"],
            "emulated: instant");
}

TEST(Faults, WhatFailsOnAllRanksIsSaidOnceAndWhatFailsOnOneIsNotLost) {
  struct Failure {
    const char *name, *settings;
    int code;
    const char* text;
  };
  for (const Failure& f : std::vector<Failure>{
           {"input", "grid.data=4 data.train=[/no/such/file.txt]", 66,
            "mindpipe-train: /no/such/file.txt: there is no such file"},
           {"memory", "grid.tensor=4 memory.device_limit=1000", 71,
            "mindpipe-train: memory: a rank of stage 0 will need"},
           {"loss", "grid.pipeline=4 optimizer.rate.peak=1000000 train.clip=0", 79,
            ": the loss is (nan|inf), .*first"},
           {"one", "train.batch=5 grid.data=5 : -np 1 " MINDPIPE_BINARY " train --config /no/such.yaml", 66,
            "mindpipe-train: rank 4: /no/such.yaml: "},
           {"unlike",
            "train.batch=8 : -np 4 " MINDPIPE_BINARY
            " train --config @ train.batch=8 grid.data=4 grid.tensor=2 grid.pipeline=auto",
            78,
            "mindpipe-train: rank 4: this rank, on [^ ]+, does not run what rank 0 runs: grid.pipeline is "
            "auto here and 1 on rank 0, "
            "grid.data "
            "is 4 "
            "here and 1 on rank 0, grid.tensor is 2 here and 1 on rank 0[,;]"},
       }) {
    SCOPED_TRACE(f.name);
    Job job(f.name, f.settings);
    ASSERT_TRUE(holds_within(60, [&] { return job.exit_code().has_value(); })) << job.output();
    EXPECT_EQ(job.exit_code(), f.code) << job.output();
    EXPECT_EQ(occurrences(job.output(), "mindpipe-train: "), 1) << job.output();
    EXPECT_THAT(job.output(), ContainsRegex(f.text));
  }
}

}  // namespace
}  // namespace mindpipe
