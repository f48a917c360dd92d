#include "app/verbs/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/the_program.h"
#include "config/config.h"

// A network taken out of a supernet, as a user does it: what it says, what it is made of, what is refused.
namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* supernet_yaml =
    "seed: 3\n"
    "model:\n"
    "  kind: supernet\n"
    "  space: {name: four, decoder: {blocks: 4, candidates: [conv-3, mlp-2, attention-2, identity]}}\n"
    "  width: 16\n"
    "  context: 16\n"
    "  vocabulary: 256\n"
    "data: {train: [synthetic:arithmetic], validation: [synthetic:arithmetic]}\n"
    "supernet: {window: 4, evaluate_subnets: 1}\n"
    "reproducible: {tensor: 2, data: 1}\n"
    "train: {steps: 16, batch: 4, micro_batch: 2, evaluate_batches: 1}\n"
    "optimizer: {rate: {kind: constant, peak: 1.0e-2}}\n"
    "checkpoint: {every: 8}\n"
    "device: {threads: 1}\n";

struct Extract : TheProgram {
  Extract() { std::ofstream(root_ / "tiny.yaml") << "run: {dir: " << path("run") << "}\n" << supernet_yaml; }
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  Answer extracted(const std::string& from, const std::string& choice, const std::string& output) const {
    return run("extract " + path(from) + " --choice " + choice + " --output " + path(output));
  }
  std::string refused(int code, const std::string& from, const std::string& choice) const {
    const Answer answer = extracted(from, choice, "refused");
    EXPECT_EQ(answer.code, code) << answer.text;
    EXPECT_FALSE(fs::exists(root_ / "refused/subnet.yaml"));
    return answer.text;
  }
  void say(const std::string& file, const std::string& text) const { std::ofstream(root_ / file) << text; }
};

TEST_F(Extract, ANetworkIsEvaluatedTrainedOnAndTrainedFromScratch) {
  ASSERT_EQ(tiny("").code, 0);
  const Answer made = extracted("run", "0,1,2,3", "net");
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_THAT(made.text, HasSubstr("its weights, from " + path("run") + "/model.safetensors"));
  const std::string yaml = path("net/subnet.yaml"), program = "eval --config " + yaml;
  const Answer inherited = run(program);
  ASSERT_EQ(inherited.code, 0) << inherited.text;
  EXPECT_THAT(inherited.text, HasSubstr("these are the weights to begin with, " + path("net")));

  const std::string once = " train.steps=1 optimizer.rate.peak=0";  // nothing changes
  ASSERT_EQ(run("--config " + yaml + once).code, 0);
  const auto last_line = [](const std::string& text) {
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  };
  const Answer trained = run(program);
  EXPECT_THAT(trained.text, Not(HasSubstr("to begin with")));
  EXPECT_EQ(last_line(trained.text), last_line(inherited.text)) << "training began with other weights";
  const std::string scratch = " run.weights= run.dir=" + path("scratch");
  ASSERT_EQ(run("--config " + yaml + once + scratch).code, 0);
  EXPECT_NE(last_line(run(program + scratch).text), last_line(inherited.text)) << "scratch is none";
}

TEST_F(Extract, ACheckpointHasTheWeightsOfARunThatWasCutOff) {
  for (const std::string precision : {"f32", "bf16"}) {
    const std::string with = " train.precision=" + precision;
    ASSERT_EQ(tiny(with + " run.dir=" + path("eight") + " train.steps=8").code, 0);
    ASSERT_EQ(tiny(with).code, 0);
    ASSERT_EQ(extracted("eight", "2,0,1,1", "of-eight").code, 0);
    ASSERT_EQ(extracted("run", "2,0,1,1", "of-end").code, 0);
    ASSERT_EQ(extracted("run/checkpoints/step-00000016", "2,0,1,1", "of-sixteen").code, 0);
    EXPECT_TRUE(read("of-sixteen/model.safetensors") == read("of-end/model.safetensors"));
    EXPECT_FALSE(read("of-end/model.safetensors") == read("of-eight/model.safetensors"));

    fs::remove_all(root_ / "run/checkpoints/step-00000016");
    say("run/status.json", R"({"state": "running", "step": 12, "reason": ""})");
    const Answer cut = extracted("run", "2,0,1,1", "of-cut");
    EXPECT_THAT(cut.text, HasSubstr("step-00000008/state.h5, after 8 subnets"));
    EXPECT_TRUE(read("of-cut/model.safetensors") == read("of-eight/model.safetensors")) << precision;
    fs::remove_all(root_ / "run/checkpoints");
    EXPECT_THAT(refused(66, "run", "2,0,1,1"), HasSubstr("has no weights to take from"));
    for (const char* run : {"run", "eight"}) fs::remove_all(root_ / run);
  }
}

TEST_F(Extract, TakesWeightsThatARunHasLeftForOthersFromItsCheckpoint) {
  ASSERT_EQ(tiny("train.steps=4 run.dir=" + path("plain")).code, 0);
  ASSERT_EQ(extracted("plain", "2,0,1,1", "of-plain").code, 0);
  int number = 0;
  for (const char* how : {"export.names=mindspore", "export.precision=bf16", "export.part=20000"}) {
    const std::string name = "run" + std::to_string(number), out = "of-" + name;
    ++number;
    ASSERT_EQ(tiny(std::string("train.steps=4 ") + how + " run.dir=" + path(name)).code, 0);
    const std::string plain = " export.names=transformers export.precision=f32 export.part=1000000";
    ASSERT_EQ(run("extract " + path(name) + " --choice 2,0,1,1 --output " + path(out) + plain).code, 0)
        << how;
    EXPECT_TRUE(read(out + "/model.safetensors") == read("of-plain/model.safetensors")) << how;
  }
}

TEST_F(Extract, WritesWeightsAsTheRunOrTheCommandLineSays) {
  ASSERT_EQ(tiny("train.steps=4 run.dir=" + path("plain")).code, 0);
  const std::string choice = " --choice 2,0,1,1 --output ";
  int number = 0;
  for (const std::string how : {"export.names=mindspore", "export.precision=bf16", "export.part=2000"}) {
    const std::string name = "run" + std::to_string(number++);
    ASSERT_EQ(tiny("train.steps=4 " + how + " run.dir=" + path(name)).code, 0);
    ASSERT_EQ(extracted(name, "2,0,1,1", "by-" + name).code, 0) << how;
    ASSERT_EQ(run("extract " + path("plain") + choice + path("as-" + name) + " " + how).code, 0) << how;
    int files = 0;
    for (const auto& entry : fs::directory_iterator(root_ / ("by-" + name))) {
      const std::string file = entry.path().filename();
      if (file == "subnet.yaml") continue;
      ++files;
      EXPECT_TRUE(read("by-" + name + "/" + file) == read("as-" + name + "/" + file)) << how << ": " << file;
    }
    EXPECT_EQ(files > 1, how == "export.part=2000");
    const Answer taken = run("eval --config " + path("by-" + name + "/subnet.yaml"));
    EXPECT_EQ(taken.code, 0) << how << ": " << taken.text;
  }
  for (const char* other : {"train.steps=3", "export", "--part=3"})
    EXPECT_EQ(
        run("extract " + path("plain") + " --choice 2,0,1,1 --output " + path("none") + " " + other).code, 2)
        << other;
  EXPECT_EQ(
      run("extract " + path("plain") + " --choice 2,0,1,1 --output " + path("none") + " export.part=-1").code,
      78);
}

TEST_F(Extract, LeavesWhatAnEarlierOneHasLeftWholeOrReplacesAllOfIt) {
  ASSERT_EQ(tiny("train.steps=4").code, 0);
  ASSERT_EQ(
      run("extract " + path("run") + " --choice 2,0,1,1 --output " + path("net") + " export.part=2000").code,
      0);
  ASSERT_EQ(extracted("run", "0,1,2,3", "net").code, 0);
  ASSERT_EQ(extracted("run", "0,1,2,3", "alone").code, 0);
  for (const auto& entry : fs::directory_iterator(root_ / "net")) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "subnet.yaml" || name == "model.safetensors") << name;
  }
  EXPECT_TRUE(read("net/model.safetensors") == read("alone/model.safetensors"));
  EXPECT_THAT(read("net/subnet.yaml"), HasSubstr("choice: [0, 1, 2, 3]"));
  const std::string own = read("run/model.safetensors");
  EXPECT_EQ(extracted("run", "0,1,2,3", "run").code, 73);
  EXPECT_TRUE(read("run/model.safetensors") == own);
}

TEST_F(Extract, LeavesTheTokenizerOfTheRunBesideTheWeights) {
  const std::string tokenizer = MINDPIPE_SOURCE_DIR "/tests/golden/tokenizers/gpt2.json",
                    text = MINDPIPE_SOURCE_DIR "/data/alice.txt";
  const Answer trained =
      tiny("train.steps=2 checkpoint.every=0 model.vocabulary=auto data.tokenizer=" + tokenizer +
           " data.train=[" + text + "] data.validation=[" + text + "]");
  ASSERT_EQ(trained.code, 0) << trained.text;
  const Answer made = extracted("run", "0,1,2,3", "net");
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_THAT(made.text, HasSubstr("no config.json for transformers: it has no architecture for a subnet"));
  std::ostringstream whole;
  whole << std::ifstream(tokenizer).rdbuf();
  EXPECT_TRUE(read("net/tokenizer.json") == whole.str());
  EXPECT_FALSE(read("net/tokenizer_config.json").empty());
}

TEST_F(Extract, RefusesWhatIsNoNetworkOfTheSupernet) {
  EXPECT_THAT(refused(66, "nowhere", "0,1,2,3"), HasSubstr("has no config.yaml"));
  ASSERT_EQ(tiny("train.steps=4 checkpoint.every=0").code, 0);
  EXPECT_THAT(refused(65, "run", "0,1,2"), HasSubstr("has 3 numbers, and four has 4 blocks"));
  EXPECT_THAT(refused(65, "run", "0,1,2,4"), HasSubstr("says '4' for block 3, which has 4 candidates"));
  EXPECT_THAT(refused(66, "run", "none.yml"), HasSubstr("none.yml"));
  ASSERT_EQ(extracted("run", "3,2,1,0", "net").code, 0);
  const std::string yaml = read("net/subnet.yaml"), old = "mlp-2, attention-2, identity";
  ASSERT_EQ(extracted("run", path("net/subnet.yaml"), "again").code, 0);
  EXPECT_THAT(read("again/subnet.yaml"), HasSubstr("choice: [3, 2, 1, 0]"));
  EXPECT_TRUE(read("again/model.safetensors") == read("net/model.safetensors"));
  std::string other = yaml;
  other.replace(other.find(old, other.find("space:")), old.size(), "mlp-4, attention-2, identity");
  say("other.yaml", other);
  EXPECT_THAT(refused(78, "run", path("other.yaml")),
              HasSubstr("candidate 1 of block 0 is mlp-2 and not mlp-4"));
  EXPECT_THAT(refused(78, "run", path("tiny.yaml")), HasSubstr("model.kind is supernet"));
  ASSERT_EQ(run("--config " + path("net/subnet.yaml") + " train.steps=1").code, 0);
  EXPECT_THAT(refused(78, "net/run", "3,2,1,0"), HasSubstr("was trained as a subnet"));

  const Answer foreign =
      run("--config " + path("net/subnet.yaml") + " model.choice=[3,2,0,0] run.dir=" + path("foreign"));
  EXPECT_EQ(foreign.code, 65);
  EXPECT_THAT(foreign.text, HasSubstr("has blocks.2.1.mlp.output.bias, blocks.2.1.mlp.output.weight, "));
  const Answer fewer =
      run("--config " + path("net/subnet.yaml") + " model.tied=false run.dir=" + path("fewer"));
  EXPECT_EQ(fewer.code, 65);
  EXPECT_THAT(fewer.text, HasSubstr("has no head.classifier.weight, which"));
}

TEST_F(Extract, WarnsOfANetworkThatNeverSeesItsSource) {
  say("tiny.yaml",
      "run: {dir: " + path("run") +
          "}\nmodel: {kind: supernet, width: 16, context: 32, space: {name: two, encoder: {blocks: 1, "
          "candidates: [glu]}, decoder: {blocks: 1, candidates: [glu, cross-2]}}}\n"
          "data: {train: [synthetic:dates]}\ntrain: {steps: 1, batch: 2, micro_batch: 1}\n");
  ASSERT_EQ(tiny("").code, 0);
  EXPECT_THAT(extracted("run", "0,0", "blind").text, HasSubstr("(block 1 with 1 (cross-2) would)"));
  EXPECT_THAT(extracted("run", "0,1", "seeing").text, Not(HasSubstr("warning")));
  EXPECT_THAT(run("--config " + path("blind/subnet.yaml")).text, HasSubstr("never sees its source"));
}

TEST_F(Extract, ItsFileReadsBackToTheSameSettingsAndSaysNoneThatGoWithoutSaying) {
  for (const std::string& overrides :
       {std::string(),
        std::string("model.dropout=0.2 train.precision=bf16 train.clip=0 seed=7 data.sequence=8"),
        std::string("optimizer.kind=sgd optimizer.rate.kind=wsd optimizer.rate.decay=3 reproducible.data=2"),
        std::string("grid.pipeline=2 model.tied=false supernet.sampler=spaced train.recompute=block")}) {
    std::vector<std::string> words;
    std::istringstream in(overrides);
    for (std::string word; in >> word;) words.push_back(word);
    const Config supernet = read_config(path("tiny.yaml"), words);
    for (const char* weights : {"", "some.safetensors"}) {
      say("net.yaml", subnet_yaml(supernet, {0, 3, 1, 2}, "runs/net", weights));
      const std::string text = read("net.yaml");
      EXPECT_EQ(read_config(path("net.yaml"), {}), subnet_config(supernet, {0, 3, 1, 2}, "runs/net", weights))
          << text;
      EXPECT_THAT(text, HasSubstr("conv-3, identity, mlp-2, attention-2"));
      for (const char* silent : {"supernet:", "schedule:", "grid:", "beta", "special", "watchdog", "norm"})
        EXPECT_THAT(text, Not(HasSubstr(silent))) << overrides;
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << text;
    }
  }
}

}  // namespace
}  // namespace mindpipe
