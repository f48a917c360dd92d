#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "app/the_program.h"

// Evaluations as a user meets them: what the verb eval prints, and what stands among the steps.
namespace mindpipe {
namespace {

using testing::HasSubstr;

class Evaluations : public TheProgram {
 protected:
  /// The members of a line that an evaluation has found.
  static nlohmann::json found(const nlohmann::json& line) {
    nlohmann::json members = nlohmann::json::object();
    for (const auto& [key, value] : line.items())
      if (key.starts_with("validation_")) members[key] = value;
    return members;
  }
  static nlohmann::json printed(const Answer& evaluated) {
    return nlohmann::json::parse(evaluated.text.substr(evaluated.text.find("{\"validation_loss")));
  }
  nlohmann::json last_line(const std::string& directory) const {
    std::istringstream lines(read(directory + "/metrics.jsonl"));
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    return nlohmann::json::parse(last);
  }
  static std::vector<std::string> names(const nlohmann::json& line) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : line.items()) keys.push_back(key);
    return keys;
  }
};

TEST_F(Evaluations, GoOnceOverAllHeldOutSamplesAndSayTheSameAmongStepsAndAfterThem) {
  const Answer trained = tiny("train.evaluate_batches=all");
  ASSERT_EQ(trained.code, 0) << trained.text;
  EXPECT_THAT(trained.text, HasSubstr("% of targets right"));
  const Answer evaluated = tiny("train.evaluate_batches=all", "eval");
  ASSERT_EQ(evaluated.code, 0) << evaluated.text;
  const nlohmann::json all = printed(evaluated);
  EXPECT_EQ(found(all), found(last_line("run"))) << "the weights are those of the last step";
  EXPECT_THAT(names(found(all)),
              testing::UnorderedElementsAre("validation_loss", "validation_perplexity", "validation_accuracy",
                                            "validation_exact", "validation_targets", "validation_samples"));
  const std::int64_t samples = all["validation_samples"];
  EXPECT_GT(samples, 100);
  EXPECT_EQ(all["validation_targets"], 32 * samples);
  EXPECT_EQ(all["batches"], (samples + 3) / 4);
  EXPECT_DOUBLE_EQ(all["validation_perplexity"], std::exp(all["validation_loss"].get<double>()));
  EXPECT_GT(all["validation_accuracy"], 0);
  EXPECT_LT(all["validation_accuracy"], 1);
  EXPECT_THAT(evaluated.text, HasSubstr("validation: all " + std::to_string(samples) + " samples of "));
  const nlohmann::json some = printed(tiny("", "eval"));
  EXPECT_EQ(some["batches"], 1);
  EXPECT_EQ(some["validation_samples"], 4);
}

TEST_F(Evaluations, OverAllHaveTheSameBitsOnTwoRanks) {
  ASSERT_EQ(tiny("train.steps=2 train.evaluate_every=0 reproducible.data=2").code, 0);
  const std::string settings = "reproducible.data=2 train.evaluate_batches=all data.sequence=31 ";
  const Answer one = tiny(settings, "eval"),
               two =
                   run_command(MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh 2 " MINDPIPE_BINARY " eval --config " +
                               (root_ / "tiny.yaml").string() + " grid.data=2 " + settings);
  ASSERT_EQ(one.code, 0) << one.text;
  ASSERT_EQ(two.code, 0) << two.text;
  EXPECT_NE(printed(one)["validation_samples"].get<std::int64_t>() % 4, 0) << "the last batch is not full";
  EXPECT_EQ(printed(one), printed(two));
}

TEST_F(Evaluations, RefuseToGoOverAllThatHasNoEnd) {
  const std::string endless = "train.evaluate_batches=all data.validation=synthetic:arithmetic";
  const Answer refused = tiny(endless);
  EXPECT_EQ(refused.code, 78) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("data.validation: synthetic:arithmetic has no end"));
  EXPECT_EQ(tiny(endless + " train.evaluate_every=0").code, 0) << "nobody evaluates";
  EXPECT_EQ(tiny(endless, "eval").code, 78);
  EXPECT_EQ(tiny("--dry-run train.evaluate_batches=all").code, 0);
  const Answer none = tiny("train.evaluate_batches=0");
  EXPECT_EQ(none.code, 78) << none.text;
  EXPECT_THAT(none.text, HasSubstr("allowed: all or a whole number from 1 to 1073741824"));
}

TEST_F(Evaluations, OfTwoSourcesAreTwoEvaluationsBesideTheirMean) {
  const std::string alice = MINDPIPE_SOURCE_DIR "/data/alice.txt", own = (root_ / "own.txt").string();
  for (int line = 0; line < 400; ++line)
    std::ofstream(own, std::ios::app) << "line " << line << " of another text\n";
  const std::string all = " train.evaluate_batches=all";
  const Answer trained = tiny("data.validation=[" + alice + "," + own + "]" + all);
  ASSERT_EQ(trained.code, 0) << trained.text;
  std::istringstream lines(read("run/metrics.jsonl"));
  std::vector<nlohmann::json> of_sources, of_steps;
  for (std::string line; std::getline(lines, line);) {
    const auto members = nlohmann::json::parse(line);
    (members.contains("source") ? of_sources : of_steps).push_back(members);
  }
  ASSERT_EQ(of_steps.size(), 4u);
  ASSERT_EQ(of_sources.size(), 4u) << "two evaluations of two sources";
  EXPECT_EQ(of_sources[2]["step"], 4);
  EXPECT_EQ(of_sources[2]["source"], alice);
  EXPECT_EQ(of_sources[3]["source"], own);
  const nlohmann::json a = printed(tiny("data.validation=" + alice + all, "eval")),
                       b = printed(tiny("data.validation=" + own + all, "eval"));
  EXPECT_EQ(found(of_sources[2]), found(a));
  EXPECT_EQ(found(of_sources[3]), found(b));
  const double targets = a["validation_targets"].get<double>() + b["validation_targets"].get<double>();
  EXPECT_EQ(of_steps[3]["validation_targets"], targets);
  EXPECT_NEAR(of_steps[3]["validation_loss"],
              (a["validation_loss"].get<double>() * a["validation_targets"].get<double>() +
               b["validation_loss"].get<double>() * b["validation_targets"].get<double>()) /
                  targets,
              1e-12);
  EXPECT_THAT(trained.text, HasSubstr("step 4: " + own + ": validation loss"));
  EXPECT_THAT(trained.text, HasSubstr("\n" + own + ": validation loss"));
  const Answer both = tiny("data.validation=[" + alice + "," + own + "]" + all, "eval");
  EXPECT_EQ(found(printed(both)), found(of_steps[3]));
  EXPECT_THAT(both.text, HasSubstr("{\"source\": \"" + own + "\", \"validation_loss\""));
  ASSERT_EQ(tiny("data.validation=[" + alice + "," + own + "]" + all + " train.steps=6").code, 0);
  const std::string metrics = read("run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 6 + 6)
      << "lines of sources stay where a run goes on";
}

TEST_F(Evaluations, OfPicturesSayTopOneAndTopFive) {
  std::ofstream(root_ / "shapes.yaml")
      << "run: {dir: " << (root_ / "shapes").string()
      << "}\n"
         "model: {kind: vit, layers: 1, width: 32, heads: 2, channels: 1, picture_height: 32, "
         "picture_width: 32, patch: 16, classes: 6}\n"
         "data: {train: synthetic:shapes, validation: synthetic:shapes}\n"
         "train: {steps: 2, batch: 4, evaluate_every: 2, evaluate_batches: 25}\n"
         "device: {threads: 1}\n";
  const std::string config = " --config " + (root_ / "shapes.yaml").string();
  const Answer trained = run("train" + config);
  ASSERT_EQ(trained.code, 0) << trained.text;
  const nlohmann::json line = found(last_line("shapes"));
  EXPECT_EQ(line, found(printed(run("eval" + config))));
  EXPECT_EQ(line["validation_top_1"], line["validation_accuracy"]);
  EXPECT_EQ(line["validation_top_1"], line["validation_exact"]) << "a picture has one target";
  EXPECT_GT(line["validation_top_5"], line["validation_top_1"]);
  EXPECT_LT(line["validation_top_5"], 1) << "there are six shapes";
  EXPECT_EQ(line["validation_targets"], 100);
}

}  // namespace
}  // namespace mindpipe
