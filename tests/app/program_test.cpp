#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/the_program.h"

// The program as a user meets it: the real binary, its files, its sentences and exit codes.
namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Processor time of all that was started and has ended: the machine may have other things to do.
double children_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(TheProgram, TrainsEvaluatesGeneratesAndLeavesEverythingInItsRunDirectory) {
  const Answer trained = tiny("");
  ASSERT_EQ(trained.code, 0) << trained.text;
  EXPECT_EQ(losses("run").size(), 4u);
  EXPECT_NEAR(losses("run")[0], 5.55, 0.1);  // ln 256
  EXPECT_LT(losses("run")[3], losses("run")[0]);
  EXPECT_EQ(nlohmann::json::parse(read("run/status.json"))["state"], "done");
  EXPECT_THAT(read("run/metrics.jsonl"), HasSubstr("validation_loss"));

  const Answer evaluated = tiny("", "eval");
  ASSERT_EQ(evaluated.code, 0) << evaluated.text;
  EXPECT_THAT(evaluated.text, HasSubstr("\"validation_loss\": "));
  const Answer once = tiny("generate.temperature=0", "generate"),
               again = tiny("generate.temperature=0", "generate");
  ASSERT_EQ(once.code, 0) << once.text;
  EXPECT_THAT(once.text, HasSubstr("Alice"));
  EXPECT_EQ(once.text, again.text);
}

TEST_F(TheProgram, RefusesAPlaceForAProfileBeforeItMeasures) {
  const std::string place = (root_ / "nowhere/profile.yaml").string();
  const Answer refused = tiny("", "profile --output " + place);
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.text, HasSubstr(place));
  EXPECT_THAT(refused.text, Not(HasSubstr("1 of "))) << "nothing was measured";
}

TEST_F(TheProgram, ContinuesTextsWithLanguageModelsAlone) {
  const auto model = [&](const std::string& space) {
    std::ofstream(root_ / "tiny.yaml")
        << "run: {dir: " << (root_ / "run").string()
        << "}\n"
           "model: {kind: subnet, width: 16, context: 32, choice: [0, 0, 0], space: {name: s, "
        << space
        << "}}\n"
           "data: {train: [synthetic:dates]}\n"
           "train: {steps: 4, batch: 4, micro_batch: 2}\n"
           "generate: {prompt: Alice, tokens: 80, temperature: 3}\n"
           "device: {threads: 1}\n";
  };
  model("decoder: {blocks: 3, candidates: [conv-5, light-7-4]}");
  const std::string texts = "data.train=" MINDPIPE_SOURCE_DIR "/data/alice.txt";
  ASSERT_EQ(tiny(texts).code, 0);
  const Answer told = tiny(texts + " generate.temperature=0", "generate");
  ASSERT_EQ(told.code, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("Alice"));
  EXPECT_EQ(tiny(texts, "generate").code, 0) << "a token that stands for no text was drawn";
  model("encoder: {blocks: 1, candidates: [glu]}, decoder: {blocks: 2, candidates: [glu]}");
  const Answer pairs = tiny("", "generate");
  EXPECT_EQ(pairs.code, 78);
  EXPECT_THAT(
      pairs.text,
      HasSubstr(
          "model.kind is 'subnet', and generate takes a language model that reads earlier words alone"));
}

TEST_F(TheProgram, ReportsTheLossesOfARunAndDrawsThem) {
  ASSERT_EQ(tiny("").code, 0);
  const std::string run_directory = (root_ / "run").string();
  const Answer told = run("report " + run_directory + " --svg " + run_directory + "/loss.svg");
  EXPECT_EQ(told.code, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("training loss of 4 steps"));
  EXPECT_THAT(told.text, testing::ContainsRegex("validation loss: [0-9.]+ [0-9.]+ at step 4"));
  EXPECT_THAT(read("run/loss.svg"), HasSubstr("</svg>"));
  const Answer none = run("report " + (root_ / "nothing").string());
  EXPECT_EQ(none.code, 66) << none.text;
  EXPECT_THAT(none.text, HasSubstr("metrics.jsonl cannot be read (name the run.dir of a training)"));
}

TEST_F(TheProgram, SaysInABatchLogWhatTheSettingAsksFor) {
  const Answer trained = tiny("run.log_every=2 run.dir=" + (root_ / "logged").string());
  ASSERT_EQ(trained.code, 0) << trained.text;
  for (const char* step : {"step 1/4 | loss", "step 2/4 | loss", "step 4/4 | loss"})
    EXPECT_THAT(trained.text, HasSubstr(step));
  EXPECT_THAT(trained.text, testing::Not(HasSubstr("step 3/4")));
  EXPECT_EQ(losses("logged").size(), 4u) << "metrics.jsonl has every step";
}

TEST_F(TheProgram, NeedsNoPython) {
  const Answer libraries = run_command("ldd " MINDPIPE_BINARY);
  EXPECT_THAT(libraries.text, HasSubstr("libmpi"));
  EXPECT_THAT(libraries.text, testing::Not(HasSubstr("python")));
  EXPECT_EQ(run_command("PATH=/nonexistent " + generate_command() + " --help").code, 0);
}

TEST_F(TheProgram, AStartThatFailsLeavesWhatAnEarlierRunHasWritten) {
  ASSERT_EQ(tiny("").code, 0);
  const std::string metrics = read("run/metrics.jsonl"), config = read("run/config.yaml");
  EXPECT_EQ(tiny("data.train=[/no/such/file.txt]").code, 0) << "the run is done, and reads no data";
  EXPECT_EQ(tiny("train.steps=6 data.train=[/no/such/file.txt]").code, 66);
  EXPECT_EQ(read("run/metrics.jsonl"), metrics);
  EXPECT_EQ(read("run/config.yaml"), config);
}

TEST_F(TheProgram, TheResolvedConfigurationRunsAgainAsItIsWithTheSameBits) {
  ASSERT_EQ(tiny("").code, 0);
  const std::vector<double> first = losses("run");
  const Answer again =
      run("--config " + (root_ / "run/config.yaml").string() + " run.dir=" + (root_ / "again").string());
  ASSERT_EQ(again.code, 0) << again.text;
  EXPECT_EQ(losses("again"), first);
}

TEST_F(TheProgram, WarnsOfAWarmUpThatIsLongerThanTheRun) {
  const Answer answer = tiny(
      "optimizer.rate.warmup=8 optimizer.rate.peak=0.004 device.kind=emulated device.description=instant");
  EXPECT_EQ(answer.code, 0) << answer.text;
  EXPECT_THAT(answer.text, HasSubstr("optimizer.rate.warmup is 8 and train.steps 4: the rate rises to 0.002, "
                                     "not to optimizer.rate.peak 0.004"));
}

TEST_F(TheProgram, ADryRunTellsParametersMemoryAndOperationsAndWritesNothing) {
  const Answer dry = tiny("--dry-run");
  ASSERT_EQ(dry.code, 0) << dry.text;
  for (const char* text : {"layers.0.attention", "memory per stage", "activations", "operations per token"})
    EXPECT_THAT(dry.text, HasSubstr(text));
  EXPECT_THAT(dry.text, HasSubstr("* with a table"));
  EXPECT_THAT(tiny("--dry-run model.tied=false").text, testing::Not(HasSubstr("*"))) << "nothing to explain";
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

TEST_F(TheProgram, OperationsATokenAreThoseOfTheWholeModelOnEveryGrid) {
  const auto counted = [&](const std::string& settings) {
    const std::string text = tiny("--dry-run model.width=64 " + settings).text, mark = "of the whole model: ";
    return std::stod(text.substr(text.find(mark) + mark.size()));
  };
  EXPECT_NEAR(counted("grid.tensor=2") / counted(""), 1, 0.01);
}

TEST_F(TheProgram, WhatDoesNotFitIsRefusedWithTheLedgerAndCode71AlsoByADryRun) {
  for (const char* how :
       {"memory.device_limit=100000", "memory.device_limit=100000 --dry-run", "plan", "plan --simulate"}) {
    const bool plans = std::string(how).starts_with("plan");
    const Answer refused = plans ? tiny("memory.device_limit=100000", how) : tiny(how);
    EXPECT_EQ(refused.code, 71) << how << refused.text;
    for (const char* text : {"memory.device_limit is", "values", "gradients", "optimizer", "activations",
                             "boundary", "workspace", "total"})
      EXPECT_THAT(refused.text, HasSubstr(text)) << how;
    EXPECT_EQ(refused.text.find("memory per stage") != std::string::npos,
              std::string(how).find("--dry-run") != std::string::npos);
    EXPECT_EQ(refused.text.find("tapes") != std::string::npos, plans) << how;
    EXPECT_EQ(refused.text.find("bubble") != std::string::npos, std::string(how) == "plan --simulate") << how;
  }
}

TEST_F(TheProgram, PrintsTheFiguresOfAPlanAlone) {
  const std::string file = (root_ / "plan.json").string();
  for (const std::string verb : {"plan --simulate", "plan --search --ranks 2"}) {
    const Answer beside = tiny("grid=auto", verb + " --json " + file),
                 alone = tiny("grid=auto", verb + " --json -");
    ASSERT_EQ(beside.code, 0) << beside.text;
    EXPECT_NE(beside.text, "");
    EXPECT_EQ(alone.text, read("plan.json")) << verb;
  }
}

TEST_F(TheProgram, WhatNoMachineHoldsIsRefusedAtOnceWithCode71) {
  const double before = children_seconds();
  const Answer refused = tiny("model.width=1048576 model.layers=100");
  EXPECT_EQ(refused.code, 71) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("and all memory of this machine is"));
  const Answer beyond = tiny("--dry-run model.width=1048576 model.layers=20000");
  EXPECT_EQ(beyond.code, 71) << beyond.text;
  EXPECT_THAT(beyond.text, HasSubstr("which no machine has; take a smaller model.width"));
  const Answer deep = tiny("--dry-run model.layers=10000 model.width=8");
  EXPECT_EQ(deep.code, 0) << deep.text;
  const Answer many = tiny("--dry-run train.batch=1000000000 train.micro_batch=1");
  EXPECT_EQ(many.code, 78) << many.text;
  EXPECT_THAT(many.text, HasSubstr("cannot be planned; take a larger train.micro_batch"));
  EXPECT_LT(children_seconds() - before, 30);
}

TEST_F(TheProgram, EvalTakesTheRanksThatThereAreAndGenerateOne) {
  ASSERT_EQ(tiny("reproducible.tensor=2").code, 0);
  const auto loss = [&](const Answer& answer) {
    return answer.text.substr(answer.text.find("{\"validation_loss"));
  };
  const Answer alone = tiny("reproducible.tensor=2", "eval"),
               meant_for_four = tiny("grid.tensor=2 grid.pipeline=2", "eval");
  ASSERT_EQ(alone.code, 0) << alone.text;
  ASSERT_EQ(meant_for_four.code, 0) << meant_for_four.text;
  EXPECT_EQ(loss(alone), loss(meant_for_four)) << "the same shards, the same bits";
  EXPECT_EQ(tiny("grid.tensor=2 grid.pipeline=2", "generate").code, 0);
  const Answer two = run_command(MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh 2 " + generate_command());
  EXPECT_EQ(two.code, 78) << two.text;
  EXPECT_THAT(two.text, HasSubstr("generate runs on one rank, and this job has 2"));
}

TEST_F(TheProgram, AFileNamedStopEndsTheRunAfterTheStepWithCode75) {
  fs::create_directories(root_ / "run");
  std::ofstream(root_ / "run/STOP") << "";
  const Answer stopped = tiny("train.steps=1000");
  EXPECT_EQ(stopped.code, 75) << stopped.text;
  EXPECT_EQ(nlohmann::json::parse(read("run/status.json"))["state"], "stopped");
}

TEST_F(TheProgram, ASignalBeforeTheFirstStepEndsEveryVerbAtOnceWithCode75) {
  const fs::path waits = fs::path(MINDPIPE_STOPS_AT_THE_END).parent_path() / "libwaits_without_end.so";
  ASSERT_TRUE(fs::exists(waits));
  const std::string config = (root_ / "tiny.yaml").string(),
                    binary =
                        "env LD_PRELOAD=" + waits.string() + " WAITS_FOR=" + config + " " + MINDPIPE_BINARY;
  const auto stopped = [&](const std::string& signal, const std::string& command) {
    const auto [text, code] = run_command("timeout -k 5 --preserve-status -s " + signal + " 0.5 " + command);
    EXPECT_EQ(code, 75) << signal << " " << command << text;
    EXPECT_THAT(text, HasSubstr("stopped at once by SIG" + signal)) << command;
  };
  for (const std::string verb : {"train", "train --dry-run", "eval", "generate", "plan"})
    for (const std::string signal : {"TERM", "INT"})
      stopped(signal, binary + " " + verb + " --config " + config);
  stopped("USR1", binary + " train --dry-run --config " + config);
  stopped("TERM", binary + " data synthesize arithmetic --documents 1000000000 --output " +
                      (root_ / "large").string());
  EXPECT_FALSE(fs::exists(root_ / "large.bin.unfinished"));
}

TEST_F(TheProgram, SigtermAmongStepsSavesTheWeightsAndEndsWithCode75) {
  const Answer stopped =
      tiny("train.steps=1000000 & pid=$!; until [ -s " + (root_ / "run/metrics.jsonl").string() +
           " ] || ! kill -0 $pid; do sleep 0.1; done; kill -TERM $pid; wait $pid");
  EXPECT_EQ(stopped.code, 75) << stopped.text;
  EXPECT_EQ(nlohmann::json::parse(read("run/status.json"))["state"], "stopped");
  EXPECT_TRUE(fs::exists(root_ / "run/model.safetensors"));
}

TEST_F(TheProgram, RefusesWhatCannotBeRightInOneSentenceWithItsExitCode) {
  struct Case {
    const char* arguments;
    int code;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {"model.vocabulary=100", 65, "vocabulary"},
           {"data.sequence=64", 78, "context"},
           {"train.batch=0", 78, "train.batch"},
           {"model.heads=3", 78, "model.heads"},
           {"data.train=[nowhere.txt]", 66, "nowhere.txt"},
           {"train.stepz=3", 78, "train.steps"},
           {"grid.tensor=2", 78, "ranks"},
           {"schedule.kind=2f2b", 78, "1f1b"},
           {"device.kind=cuda", 78, "CUDA"},
           {"reproducible.tensor=3", 78, "reproducible.tensor"},
       }) {
    const Answer refused = tiny(c.arguments);
    EXPECT_EQ(refused.code, c.code) << c.arguments << ": " << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(c.text)) << c.arguments;
    EXPECT_THAT(refused.text, HasSubstr("mindpipe-train: ")) << c.arguments;
  }
}

TEST_F(TheProgram, GenerateBeforeATrainingSaysWhatIsMissing) {
  const Answer refused = tiny("", "generate");
  EXPECT_EQ(refused.code, 66) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("model.safetensors: there is no such file; a training leaves it in its "
                                      "run.dir"));
}

TEST_F(TheProgram, ThreadsThatWouldOnlyWaitForEachOtherAreRefusedWhereTheyWouldCompute) {
  if (std::thread::hardware_concurrency() >= 256)
    GTEST_SKIP() << "this machine has processors for as many threads as can be asked for";
  for (const char* verb : {"train", "eval", "generate"}) {
    const Answer refused = tiny("device.threads=4096", verb);
    EXPECT_EQ(refused.code, 78) << verb << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("device.threads (or OMP_NUM_THREADS) is 4096, but a rank on "))
        << verb;
  }
  EXPECT_EQ(tiny("--dry-run device.threads=4096").code, 0);
  EXPECT_EQ(tiny("device.threads=4096", "plan --simulate").code, 0);
  EXPECT_EQ(
      tiny("device.threads=4096 device.kind=emulated device.description=core train.evaluate_every=0").code,
      0);
}

TEST_F(TheProgram, ALossThatIsNotFiniteNamesTheTensorAndExitsWith79) {
  const Answer diverged =
      tiny("optimizer.rate.peak=1000000 train.clip=0 train.steps=20 train.evaluate_every=0");
  EXPECT_EQ(diverged.code, 79) << diverged.text;
  EXPECT_THAT(diverged.text, HasSubstr("the loss is"));
  EXPECT_THAT(diverged.text, HasSubstr("first"));
  EXPECT_EQ(nlohmann::json::parse(read("run/status.json"))["state"], "failed");
}

TEST_F(TheProgram, AloneNeedsNoDirectoryOfOpenMpisThatRunsBesideItShare) {
  const Answer answer =
      run_command("TMPDIR=/dev/null " MINDPIPE_BINARY " --config " + (root_ / "tiny.yaml").string());
  EXPECT_EQ(answer.code, 0) << answer.text;
}

}  // namespace
}  // namespace mindpipe
