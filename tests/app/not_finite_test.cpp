#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>

#include "app/the_program.h"

// What comes of numbers that are none: every verb refuses them with exit code 79 and says where they begin.
namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::Not;

class NotFinite : public TheProgram {
 protected:
  /// Sets element 3 of a tensor of the run's weights.
  void spoil(const std::string& tensor, float value) {
    const std::string path = (root_ / "run/model.safetensors").string();
    std::string bytes = read("run/model.safetensors");
    ASSERT_GT(bytes.size(), 8u);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    const auto offsets = nlohmann::json::parse(bytes.substr(8, header))[tensor]["data_offsets"];
    std::memcpy(bytes.data() + 8 + header + offsets[0].get<std::size_t>() + 12, &value, 4);
    std::ofstream(path, std::ios::binary) << bytes;
  }
};

TEST_F(NotFinite, AWeightIsNamedByEvalOnEveryLayoutAndByGenerateBeforeItWritesAToken) {
  ASSERT_EQ(tiny("").code, 0);
  spoil("transformer.h.0.mlp.c_proj.weight", std::numeric_limits<float>::quiet_NaN());
  constexpr const char* named =
      "; the first that is not finite is the weight layers.0.mlp.mlp.output.weight (";
  const std::string eval = std::string(MINDPIPE_BINARY) + " eval --config " + (root_ / "tiny.yaml").string();
  for (const std::string& command :
       {eval, MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh 4 " + eval + " grid.tensor=2 grid.pipeline=2",
        MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh 2 " + eval + " grid.data=2"}) {
    const Answer refused = run_command(command);
    EXPECT_EQ(refused.code, 79) << command << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(std::string("the validation loss is nan") + named)) << command;
    EXPECT_THAT(refused.text, Not(HasSubstr("validation_loss"))) << command;
  }
  for (const char* rule :
       {"generate.temperature=0", "generate.temperature=1", "generate.top_k=3", "generate.top_p=0.5"}) {
    const Answer written =
        run_command("(" + generate_command() + " " + rule + " 2>" + (root_ / "words").string() + ")");
    EXPECT_EQ(written.code, 79) << rule;
    EXPECT_EQ(written.text, "Alice") << rule;
    EXPECT_THAT(read("words"),
                HasSubstr(std::string("token 1 of the text cannot be drawn: a logit is nan") + named))
        << rule;
  }
}

TEST_F(NotFinite, TheBlockIsNamedWhereWeightsAreFinite) {
  ASSERT_EQ(tiny("").code, 0);
  spoil("transformer.h.0.attn.c_attn.weight", 3e38F);
  const Answer refused = tiny("train.evaluate_batches=2", "eval");
  EXPECT_EQ(refused.code, 79) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("in batch 1 of 2, weights are finite; the first output that is not is "
                                      "that of block layers.0.attention ("));
  const Answer written = run_command(generate_command());
  EXPECT_EQ(written.code, 79) << written.text;
  EXPECT_THAT(written.text, HasSubstr("all weights are finite, but what comes of them is not"));
}

TEST_F(NotFinite, AnEvaluationAmongStepsSendsTheTrainingBack) {
  const Answer back = tiny(
      "train.steps=8 train.evaluate_every=1 checkpoint.every=2 --inject "
      "flip@0:5:layers.0.attention.norm.weight//0/30");
  EXPECT_EQ(back.code, 0) << back.text;
  EXPECT_THAT(back.text, HasSubstr("step 5: the validation loss is "));
  EXPECT_THAT(back.text, HasSubstr("; the run goes back to step 4 and leaves out samples 16 to 19"));
}

TEST_F(NotFinite, AnEvaluationAmongStepsEndsATrainingThatCannotGoBack) {
  const Answer diverged =
      tiny("optimizer.rate.peak=1000000 train.clip=0 train.steps=1 train.evaluate_every=1");
  EXPECT_EQ(diverged.code, 79) << diverged.text;
  EXPECT_THAT(
      diverged.text,
      HasSubstr("step 1: the validation loss is nan; in batch 1 of 1, weights are finite; the first output"));
  EXPECT_EQ(nlohmann::json::parse(read("run/status.json"))["state"], "failed");
  EXPECT_FALSE(fs::exists(root_ / "run/model.safetensors"));
}

}  // namespace
}  // namespace mindpipe
