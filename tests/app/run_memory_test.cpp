// thorough
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

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

  /// What a rank of each stage will need, in bytes, as the dry run prints it.
  std::vector<double> predicted(const std::string& settings, int ranks) const {
    const std::string command = program("--dry-run --ranks " + std::to_string(ranks) + " " + settings);
    EXPECT_EQ(std::system((command + " >" + (root_ / "output").string() + " 2>&1").c_str()), 0) << output();
    const std::string text = output(),
                      table = text.substr(text.find("memory per stage"), text.find("workspace per stage"));
    std::vector<double> stages;
    const std::regex total(R"(\n\d+ .* ([0-9.]+) (K|M|G)iB(?=\n))");
    for (std::sregex_iterator line(table.begin(), table.end(), total), end; line != end; ++line)
      stages.push_back(std::stod((*line)[1]) * std::exp2((*line)[2] == "K"   ? 10
                                                         : (*line)[2] == "M" ? 20
                                                                             : 30));
    return stages;
  }

  /// The most that was ever resident of each rank's process, in bytes.
  std::vector<double> resident(const std::string& settings, int ranks) const {
    const std::string launcher =
        ranks == 1 ? "" : MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh " + std::to_string(ranks) + " ";
    const std::string peak = (root_ / "peak").string();
    fs::remove_all(root_ / "run");
    EXPECT_EQ(std::system((launcher + "python3 " MINDPIPE_SOURCE_DIR "/tests/peak_memory.py " + peak + " " +
                           program(settings) + " >" + (root_ / "output").string() + " 2>&1")
                              .c_str()),
              0)
        << output();
    EXPECT_TRUE(fs::exists(root_ / "run/model.safetensors")) << output();
    std::vector<double> most(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      std::ifstream(peak + "." + std::to_string(rank)) >> most[static_cast<size_t>(rank)];
    return most;
  }

  /// What is not of the model (code, MPI, threads) is taken, rank by rank, from a run of the same layout that
  /// has next to none.
  void expect_as_predicted(const std::string& settings, int ranks = 1) const {
    const std::string narrow = settings + " model.width=16 model.vocabulary=256 model.mlp_width=32";
    const auto wide_plan = predicted(settings, ranks), narrow_plan = predicted(narrow, ranks);
    const auto wide_run = resident(settings, ranks), narrow_run = resident(narrow, ranks);
    ASSERT_EQ(wide_plan.size(), narrow_plan.size());
    ASSERT_FALSE(wide_plan.empty());
    for (size_t rank = 0; rank < wide_run.size(); ++rank) {
      const size_t stage = rank * wide_plan.size() / wide_run.size();
      const double expected = wide_plan[stage] - narrow_plan[stage], seen = wide_run[rank] - narrow_run[rank];
      EXPECT_GT(expected, 20 * 0x1p20) << settings;
      constexpr double brought_together = 4 * 0x1p20;  // of the checkpoint at the end, at a time
      const std::string sentence =
          fmt::format("{}: rank {} has {} bytes more, {} predicted", settings, rank, seen, expected);
      EXPECT_GT(seen, 0.95 * expected) << sentence;
      EXPECT_LT(seen, 1.05 * expected + brought_together) << sentence;
    }
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
