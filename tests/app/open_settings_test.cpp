// thorough
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "app/plan/grid_choice.h"
#include "app/plan/open_choice.h"
#include "core/check.h"
#include "the_program.h"

// Settings that a file leaves to the search before a training.
namespace mindpipe {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

using OpenSettings = TheProgram;

const std::string everything =
    "schedule=auto grid=auto train.zero=auto train.recompute=auto train.sequence_parallel=auto "
    "train.micro_batch=auto";

std::string on_ranks(int ranks) {
  return "cd " MINDPIPE_SOURCE_DIR " && tests/run_mpi.sh " + std::to_string(ranks) + " " MINDPIPE_BINARY " ";
}

/// What the log says was chosen.
std::string chosen_in(const std::string& text) {
  const std::string begin = "the best on paper for ";
  const std::size_t there = text.find(begin), colon = text.find(": grid.", there);
  return there == std::string::npos ? "" : text.substr(colon + 2, text.find('\n', there) - colon - 2);
}

TEST_F(OpenSettings, ARunWithAutoHasTheWeightsOfOneWithTheChosenSettingsTypedIn) {
  const std::string settings = " --config " + (root_ / "tiny.yaml").string() +
                               " train.batch=16 model.layers=3 train.steps=3 train.evaluate_every=0 ";
  for (const int ranks : {1, 2, 4}) {
    const std::string open = (root_ / ("open" + std::to_string(ranks))).string(),
                      typed = (root_ / ("typed" + std::to_string(ranks))).string();
    const Answer searched = run_command(on_ranks(ranks) + settings + everything + " run.dir=" + open);
    ASSERT_EQ(searched.code, 0) << searched.text;
    std::string chosen = chosen_in(searched.text);
    ASSERT_THAT(chosen, AllOf(HasSubstr("train.micro_batch="), HasSubstr("schedule.kind="))) << searched.text;
    std::string quoted;  // cuts have spaces in their brackets
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] != ' ' || chosen[i - 1] != ',') quoted += chosen[i];
    const Answer again = run_command(on_ranks(ranks) + settings + quoted + " run.dir=" + typed);
    ASSERT_EQ(again.code, 0) << again.text;
    const Answer same = run("ckpt diff " + open + " " + typed);
    EXPECT_EQ(same.code, 0) << same.text << searched.text;
    const std::string resolved = read("open" + std::to_string(ranks) + "/config.yaml");
    for (const char* key : {"zero", "recompute", "micro_batch", "kind", "cuts", "chunks", "pipeline", "data"})
      EXPECT_EQ(resolved.find(std::string(key) + ": auto\n"), std::string::npos) << resolved;
  }
}

TEST_F(OpenSettings, WhateverPricesChooseARunHasTheBitsOfOneRank) {
  const std::string settings = " --config " + (root_ / "tiny.yaml").string() +
                               " train.batch=16 model.layers=3 train.steps=3 train.evaluate_every=0"
                               " reproducible.data=4 reproducible.tensor=2 ";
  const std::string one = (root_ / "one").string();
  ASSERT_EQ(run_command(on_ranks(1) + settings + "run.dir=" + one).code, 0);
  std::set<std::string> layouts;
  std::mt19937_64 random(44);
  const auto between = [&](double least, double most) {
    return least * std::pow(most / least, std::uniform_real_distribution<>()(random));
  };
  for (int draw = 0; draw < 10; ++draw) {
    const std::string device = (root_ / "device.yaml").string(), directory = (root_ / "drawn").string();
    std::ofstream(device) << fmt::format(
        "like: core\nflops_f32: {:.6e}\nbytes: {:.6e}\nlaunch: {:.6e}\nlinks: {{ranks_per_node: {}, latency: "
        "{:.6e}, "
        "rate: {:.6e}, latency_between_nodes: {:.6e}, rate_between_nodes: {:.6e}}}\n",
        between(1e9, 1e12), between(1e9, 1e12), between(1e-8, 1e-4), 1 << draw % 3, between(1e-7, 1e-3),
        between(1e6, 1e11), between(1e-7, 1e-3), between(1e6, 1e11));
    const Answer drawn =
        run_command(on_ranks(4) + settings + "schedule=auto grid=auto train.zero=auto train.recompute=auto " +
                    "train.sequence_parallel=auto device.description=" + device + " run.dir=" + directory);
    ASSERT_EQ(drawn.code, 0) << drawn.text;
    layouts.insert(chosen_in(drawn.text));
    const Answer same = run("ckpt diff " + one + " " + directory);
    EXPECT_EQ(same.code, 0) << same.text << drawn.text;
    fs::remove_all(directory);
  }
  EXPECT_GT(layouts.size(), 2U) << "prices that differ choose otherwise";
}

TEST_F(OpenSettings, ASearchWritesTheSameBytesOnOneAndEightRanks) {
  const auto written = [&](int ranks) {
    const std::string file = (root_ / "search.json").string();
    const Answer answer =
        run_command(on_ranks(ranks) + "plan --search --ranks 8 --config " + (root_ / "tiny.yaml").string() +
                    " train.batch=32 model.layers=6 model.heads=4 grid=auto --json " + file);
    EXPECT_EQ(answer.code, 0) << answer.text;
    return read("search.json");
  };
  const std::string alone = written(1);
  EXPECT_THAT(alone, HasSubstr("\"chosen\""));
  EXPECT_EQ(written(8), alone);
  for (int repetition = 0; repetition < 20; ++repetition) ASSERT_EQ(written(1), alone);
}

TEST_F(OpenSettings, TapesThatAreChosenAreTheSameOnOneAndEightRanks) {
  const auto written = [&](int ranks) {
    const std::string file = (root_ / "tapes.json").string();
    const Answer answer = run_command(
        on_ranks(ranks) +
        "plan --search --ranks 8 --config configs/gpt2-124m.yaml model.vocabulary=512 model.layers=24 "
        "device.kind=cuda device.description=h200 grid.pipeline=8 grid.data=1 grid.tensor=1 train.batch=16 "
        "reproducible.tensor=1 reproducible.data=1 train.zero=0 train.micro_batch=2 schedule.kind=1f1b "
        "train.recompute=auto train.swap=auto memory.device_limit=900MiB device.links.copies=40e9 --json " +
        file);
    EXPECT_EQ(answer.code, 0) << answer.text;
    EXPECT_THAT(answer.text, AllOf(HasSubstr("tapes of blocks: stage 0 keeps "), HasSubstr("keeping all: "),
                                   HasSubstr("swapping all: "), HasSubstr("what binds: ")));
    return read("tapes.json");
  };
  EXPECT_EQ(written(1), written(8));
}

TEST_F(OpenSettings, ARunThatGoesOnIsSearchedAnewAndKeepsItsArithmetic) {
  const std::string settings = " --config " + (root_ / "tiny.yaml").string() +
                               " train.batch=16 model.layers=3 reproducible.data=2 train.evaluate_every=0 " +
                               everything + " run.dir=" + (root_ / "on").string();
  ASSERT_EQ(run_command(on_ranks(1) + settings + " run.stop_after=2").code, 75);
  const std::string before = read("on/config.yaml");
  const Answer more = run_command(on_ranks(2) + settings);
  ASSERT_EQ(more.code, 0) << more.text;
  EXPECT_THAT(more.text, AllOf(HasSubstr("the best on paper for 2 ranks"), HasSubstr("going on from")));
  const auto line = [](const std::string& text, const std::string& key) {
    const std::size_t begin = text.find(key);
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(line(before, "micro_batch"), line(read("on/config.yaml"), "micro_batch"));
  EXPECT_EQ(chosen_in(more.text).find("micro_batch"), std::string::npos) << "it is the checkpoint's";
}

TEST_F(OpenSettings, ABatchIsFoundByWhatItsSamplesAreWorth) {
  const std::string dry = "train.batch=16 plan.batches=auto --dry-run";
  EXPECT_THAT(tiny(dry).text, HasSubstr("nobody said how much (set plan.noise_scale"));
  const auto batch_with = [&](const std::string& noise) {
    const Answer answer = tiny(
        "train.steps=1 train.evaluate_every=0 train.batch=16 plan.batches=auto "
        "plan.noise_scale=" +
        noise + " run.dir=" + (root_ / ("noise" + noise)).string());
    EXPECT_EQ(answer.code, 0) << answer.text;
    const std::string text = read("noise" + noise + "/config.yaml");
    const std::size_t begin = text.find("  batch: ") + 9;
    return std::stoi(text.substr(begin, text.find('\n', begin) - begin));
  };
  EXPECT_EQ(batch_with("1"), 4) << "a quarter: more samples of a step are worth nothing";
  EXPECT_GT(batch_with("100000"), 4);
}

TEST_F(OpenSettings, WhatSaysWhatTheModelIsIsNeverSearched) {
  const Answer layers = tiny("model.layers=auto");
  EXPECT_EQ(layers.code, 78);
  EXPECT_THAT(layers.text, HasSubstr("model.layers is auto, but it says what the model is, and a search "
                                     "chooses only how that is spread over ranks; allowed: a whole number"));
  EXPECT_THAT(tiny("optimizer.beta1=auto").text, HasSubstr("it says what is computed"));
  EXPECT_THAT(tiny("train.precision=auto").text, HasSubstr("it says what is computed"));
  EXPECT_THAT(tiny("memory.device_limit=auto").text, HasSubstr("allowed: bytes"));
}

TEST_F(OpenSettings, ADegreeThatIsWrittenStaysOrIsRefused) {
  const Answer answer = tiny("grid=auto grid.tensor=2");
  EXPECT_EQ(answer.code, 78) << answer.text;
  EXPECT_THAT(answer.text, HasSubstr("the degrees of the grid that are written do not divide 1 rank; start a "
                                     "multiple of 2, or let them be auto"));
}

TEST_F(OpenSettings, NothingFitsEndsWith71AndSaysWhatIsMissing) {
  const Answer answer = tiny("train.zero=auto train.recompute=auto memory.device_limit=100000");
  EXPECT_EQ(answer.code, 71) << answer.text;
  EXPECT_THAT(answer.text, AllOf(HasSubstr("no layout of 1 ranks fits into memory.device_limit"),
                                 ContainsRegex("the least of these is short of .* by [0-9.]+ [KM]iB")));
  const Answer bounds = tiny(
      "--ranks 2 grid=auto train.zero=auto train.recompute=auto memory.device_limit=400000", "plan --search");
  EXPECT_EQ(bounds.code, 71) << bounds.text;
  EXPECT_THAT(bounds.text, ContainsRegex("with train.micro_batch=[0-9]+ (it would fit|another layout fits: )|"
                                         "for this layout no smaller train.micro_batch"))
      << bounds.text;
  EXPECT_THAT(bounds.text, Not(HasSubstr("by -"))) << bounds.text;
}

TEST_F(OpenSettings, StandInPrintedConfigurationsAndPlans) {
  const std::string printed = tiny(everything + " --print-config").text;
  EXPECT_THAT(printed, AllOf(HasSubstr("  zero: auto\n"), HasSubstr("  kind: auto\n"),
                             HasSubstr("  micro_batch: auto\n"), HasSubstr("  cuts: auto\n")));
  EXPECT_THAT(tiny(everything + " --ranks 2", "plan").text, HasSubstr("2 ranks"));
  EXPECT_EQ(tiny(everything, "eval").code, 66) << "it takes the run's own, and there is no run yet";
}

}  // namespace
}  // namespace mindpipe
