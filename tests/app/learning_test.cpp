// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/the_program.h"

// Models of every kind learn within seconds, as a user would let them: bundled configurations, stopped, gone
// on with, evaluated.
namespace mindpipe {
namespace {

class Learning : public TheProgram {
 protected:
  /// The bundled configuration of a tiny model, from the directory that its sources are named from.
  Answer tiny_model(const std::string& name, const std::string& verb, const std::string& directory,
                    const std::string& settings) const {
    const std::string file = name == "evolved-transformer" ? "-dates.yaml" : "-tiny.yaml";
    return run_command("cd " MINDPIPE_SOURCE_DIR " && " MINDPIPE_BINARY " " + verb + " --config configs/" +
                       name + file + " device.threads=1 run.dir=" + (root_ / directory).string() + " " +
                       settings);
  }
  nlohmann::json last_line(const std::string& directory) const {
    std::istringstream lines(read(directory + "/metrics.jsonl"));
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    return nlohmann::json::parse(last);
  }

  /// Trains for `steps`, whose last evaluation must be below `loss`; goes on from the half, to the same bits;
  /// evaluates what was saved, to what was found among the steps.
  void learns(const std::string& name, int steps, double loss) {
    const std::string often =
        fmt::format("train.steps={} checkpoint.every={} train.evaluate_every={} ", steps, steps / 2, steps);
    const Answer trained = tiny_model(name, "train", "whole", often);
    ASSERT_EQ(trained.code, 0) << trained.text;
    const nlohmann::json last = last_line("whole");
    EXPECT_LT(last["validation_loss"], loss);

    const std::string half = (root_ / fmt::format("whole/checkpoints/step-{:08}", steps / 2)).string();
    const Answer resumed = tiny_model(name, "train", "resumed", often + "run.resume=" + half);
    ASSERT_EQ(resumed.code, 0) << resumed.text;
    const std::vector<double> all = losses("whole"), rest = losses("resumed");
    ASSERT_GE(rest.size(), static_cast<std::size_t>(steps / 2));
    EXPECT_TRUE(std::equal(rest.end() - steps / 2, rest.end(), all.end() - steps / 2))
        << "from step " << steps / 2 << " on";

    const Answer evaluated = tiny_model(name, "eval", "resumed", often);
    ASSERT_EQ(evaluated.code, 0) << evaluated.text;
    const auto found =
        nlohmann::json::parse(evaluated.text.substr(evaluated.text.find("{\"validation_loss")));
    for (const char* member : {"validation_loss", "validation_accuracy", "validation_exact"})
      EXPECT_EQ(found[member], last[member]) << member;
    EXPECT_GT(found["validation_accuracy"], 0);
  }
};

TEST_F(Learning, FindsMaskedLettersOfSums) { learns("bert", 160, 2.55); }
TEST_F(Learning, WritesDatesAsIsoDoes) { learns("transformer", 260, 0.95); }
TEST_F(Learning, WritesDatesByConvolutionsToo) { learns("evolved-transformer", 60, 0.95); }
TEST_F(Learning, WritesDatesByLayersThatWereChosenBlockByBlock) { learns("subnet", 60, 0.95); }
TEST_F(Learning, TellsShapesApart) { learns("vit", 100, 1.45); }
TEST_F(Learning, TellsShapesApartByConvolutions) { learns("wide-resnet", 60, 1.6); }

/// One number for all channels is that number for each; another one of any channel counts.
TEST_F(Learning, SeesChannelsByTheirOwnMeans) {
  const auto loss = [&](const std::string& mean) {
    const Answer trained = tiny_model("vit", "train", mean,
                                      "train.steps=1 train.batch=4 train.micro_batch=2 train.precision=f32 "
                                      "train.evaluate_every=0 model.channels=3 model.mean=" +
                                          mean);
    EXPECT_EQ(trained.code, 0) << trained.text;
    return losses(mean).at(0);
  };
  const double one = loss("0.5");
  EXPECT_EQ(loss("[0.5,0.5,0.5]"), one);
  EXPECT_NE(loss("[0.5,0.25,0.5]"), one);
  EXPECT_NE(loss("[0.5,0.5,0.25]"), one);
  EXPECT_NE(loss("[0.5,0.25,0.5]"), loss("[0.5,0.5,0.25]"));
}

}  // namespace
}  // namespace mindpipe
