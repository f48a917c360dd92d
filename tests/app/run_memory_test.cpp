#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

// The memory of whole runs, from the first sentence to the saved weights, against what a dry run says of
// them.
namespace mindpipe {
namespace {

namespace fs = std::filesystem;

class MemoryOfRuns : public testing::Test {
 protected:
  MemoryOfRuns()
      : root_(fs::temp_directory_path() / ("mindpipe_memory_of_runs_" + std::to_string(getpid()))) {
    fs::create_directories(root_);
    std::ofstream(root_ / "run.yaml")
        << "run: {dir: " << (root_ / "run").string()
        << "}\n"
           "model: {kind: gpt, layers: 1, width: 64, heads: 2, context: 32, vocabulary: 50257}\n"
           "data: {train: [\"synthetic:arithmetic\"]}\n"
           "train: {steps: 2, batch: 4, micro_batch: 2}\n"
           "optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}\n"
           "device: {threads: 1}\n";
  }
  ~MemoryOfRuns() override { fs::remove_all(root_); }

  std::string program(const std::string& settings) const {
    return std::string(MINDPIPE_BINARY) + " --config " + (root_ / "run.yaml").string() + " " + settings;
  }
  std::string output() const {
    std::ostringstream text;
    text << std::ifstream(root_ / "output").rdbuf();
    return text.str();
  }

  /// What a rank of the stage that needs the most will need, in bytes, as the dry run prints it.
  double predicted(const std::string& settings, int ranks) const {
    const std::string command = program("--dry-run --ranks " + std::to_string(ranks) + " " + settings);
    EXPECT_EQ(std::system((command + " >" + (root_ / "output").string() + " 2>&1").c_str()), 0) << output();
    const std::string text = output(),
                      table = text.substr(text.find("memory per stage"), text.find("workspace per stage"));
    double most = 0;
    const std::regex total(R"(\n\d+ .* ([0-9.]+) (K|M|G)iB(?=\n))");
    for (std::sregex_iterator line(table.begin(), table.end(), total), end; line != end; ++line)
      most = std::max(most, std::stod((*line)[1]) * std::exp2((*line)[2] == "K"   ? 10
                                                              : (*line)[2] == "M" ? 20
                                                                                  : 30));
    return most;
  }

  /// The most that was ever resident of the largest process, in bytes.
  double resident(const std::string& settings, int ranks) const {
    const std::string launcher =
        ranks == 1 ? "" : MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh " + std::to_string(ranks) + " ";
    // A process counts what it was before its exec, too: so it is not this one's child but a shell's, which
    // leaves it to this one.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const std::string started = (root_ / "process").string();
    fs::remove_all(root_ / "run");
    EXPECT_EQ(std::system((launcher + program(settings) + " >" + (root_ / "output").string() +
                           " 2>&1 & echo $! >" + started)
                              .c_str()),
              0);
    pid_t process = 0, ended = 0;
    std::ifstream(started) >> process;
    int status = 0;
    double most = 0;
    for (rusage usage{}; (ended = wait4(-1, &status, 0, &usage)) >
                         0;) {  // MPI leaves a process of its own behind, for a moment
      if (ended != process) continue;
      EXPECT_EQ(status, 0) << output();
      most = static_cast<double>(usage.ru_maxrss) * 1024;
    }
    EXPECT_TRUE(fs::exists(root_ / "run/model.safetensors")) << output();
    return most;
  }

  /// What is not of the model (code, MPI, threads) is taken from a run of the same layout that has next to
  /// none.
  void expect_as_predicted(const std::string& settings, int ranks = 1) const {
    const std::string narrow = settings + " model.width=16 model.vocabulary=256 model.mlp_width=32";
    const double expected = predicted(settings, ranks) - predicted(narrow, ranks);
    const double seen = resident(settings, ranks) - resident(narrow, ranks);
    EXPECT_GT(expected, 20 * 0x1p20) << settings;
    constexpr double brought_together = 4 * 0x1p20;  // of the checkpoint at the end, at a time
    EXPECT_GT(seen, 0.95 * expected) << settings << ": " << seen << " bytes more, " << expected
                                     << " predicted";
    EXPECT_LT(seen, 1.05 * expected + brought_together)
        << settings << ": " << seen << " bytes more, " << expected << " predicted";
  }

  fs::path root_;
};

TEST_F(MemoryOfRuns, IsAsPredictedWhereOneTableIsMostOfTheModel) {
  expect_as_predicted("");
  expect_as_predicted("train.precision=bf16 model.tied=false");
}
TEST_F(MemoryOfRuns, IsAsPredictedWhereBlocksAreMostOfTheModelAndItIsEvaluated) {
  expect_as_predicted(
      "model.layers=4 model.width=256 model.vocabulary=512 data.validation=[\"synthetic:arithmetic\"] "
      "train.evaluate_every=1 "
      "train.evaluate_batches=1");
}
TEST_F(MemoryOfRuns, IsAsPredictedOnTwoRanks) {
  expect_as_predicted("grid.tensor=2", 2);
  expect_as_predicted("grid.pipeline=2 train.precision=bf16", 2);
}

}  // namespace
}  // namespace mindpipe
