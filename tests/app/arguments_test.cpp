#include "app/verbs/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/check.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Arguments parse(std::vector<std::string> words) {
  words.insert(words.begin(), "mindpipe-train");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_arguments(static_cast<int>(argv.size()), argv.data());
}

std::string complaint(const std::vector<std::string>& words) {
  try {
    parse(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Arguments, TrainIsTheVerbWhenNoneIsNamed) {
  const Arguments a = parse({"--config", "gpt.yaml", "train.steps=20", "data.train=[a,b]"});
  EXPECT_EQ(a.verb, "train");
  EXPECT_EQ(a.config, "gpt.yaml");
  EXPECT_THAT(a.overrides, ElementsAre("train.steps=20", "data.train=[a,b]"));
  EXPECT_FALSE(a.dry_run || a.print_config || a.simulate);
}

TEST(Arguments, OverridesAndOptionsMayStandInAnyOrder) {
  const Arguments a =
      parse({"generate", "generate.prompt=To be, or # not: \"x\"", "--config=gpt.yaml", "generate.tokens=5"});
  EXPECT_EQ(a.verb, "generate");
  EXPECT_THAT(a.overrides, ElementsAre("generate.prompt=To be, or # not: \"x\"", "generate.tokens=5"));
  EXPECT_THAT(parse({"train.steps=3", "--config", "x"}).overrides, ElementsAre("train.steps=3"));
}

TEST(Arguments, ReadsEachVerbsOptions) {
  EXPECT_TRUE(parse({"train", "--config", "x", "--dry-run"}).dry_run);
  EXPECT_TRUE(parse({"--config", "x", "--print-config"}).print_config);
  EXPECT_THAT(parse({"--config", "x", "--max-walltime", "23h50m"}).overrides,
              ElementsAre("run.max_walltime=23h50m"));
  const Arguments plan = parse({"plan", "--config", "x", "--simulate", "--ranks", "64"});
  EXPECT_TRUE(plan.simulate);
  EXPECT_EQ(plan.ranks, 64);
  EXPECT_EQ(parse({"doctor"}).verb, "doctor");
  EXPECT_EQ(parse({"doctor", "--tune", "table", "--config", "x"}).tune, "table");
}

TEST(Arguments, ReadsWhatDataIsAskedToDo) {
  Arguments a = parse({"data", "import", "in.jsonl", "--output", "out", "--jsonl", "--key", "body"});
  EXPECT_EQ(a.data.action, "import");
  EXPECT_THAT(a.data.import.inputs, ElementsAre("in.jsonl"));
  EXPECT_EQ(a.data.import.output, "out");
  EXPECT_EQ(a.data.import.format, "jsonl");
  EXPECT_EQ(a.data.import.rules.key, "body");
  a = parse({"data", "synthesize", "arithmetic", "--output", "out", "--documents", "7", "--seed", "9"});
  EXPECT_EQ(a.data.action, "synthesize");
  EXPECT_EQ(a.data.documents, 7);
  EXPECT_EQ(a.data.seed, 9u);
  EXPECT_EQ(parse({"data", "inspect", "out", "--show", "5"}).data.show, 5);
  a = parse({"data", "import", "in.txt", "--output", "out", "--format", "paragraphs", "--end-of-text"});
  EXPECT_EQ(a.data.import.format, "paragraphs");
  EXPECT_TRUE(a.data.import.rules.end_of_text);
}

TEST(Arguments, AnswersWithoutAConfiguration) {
  EXPECT_THAT(parse({"--help"}).answer, HasSubstr("mindpipe-train [VERB] --config FILE [key=value ...]"));
  EXPECT_THAT(parse({"train", "--help"}).answer, HasSubstr("--dry-run"));
  EXPECT_THAT(parse({"data", "import", "--help"}).answer, HasSubstr("--jsonl"));
  EXPECT_THAT(parse({"--version"}).answer, HasSubstr("mindpipe-train 0."));
  EXPECT_THAT(parse({"plan", "--help-config"}).answer, HasSubstr("train.micro_batch = 4"));
}

TEST(Arguments, RefusesWithASentence) {
  EXPECT_EQ(
      complaint({}),
      "command line: nothing is asked for (mindpipe-train --config FILE trains, --help shows the rest)");
  EXPECT_EQ(complaint({"tarin", "--config", "x"}),
            "command line: tarin is not a verb (train, eval, generate, search, plan, profile, arithmetic, "
            "report, replay, data, ckpt, extract, import, doctor); did you mean train?");
  EXPECT_EQ(complaint({"doctor", "--tune", "table"}),
            "command line: --config FILE is missing (doctor --tune needs one; configs/ holds examples)");
  EXPECT_EQ(complaint({"doctor", "--config", "x"}),
            "command line: a configuration is read only by doctor --tune TABLE; doctor alone examines this "
            "machine");
  EXPECT_EQ(complaint({"gpt.yaml"}), "command line: gpt.yaml is not a verb; did you mean --config gpt.yaml?");
  EXPECT_EQ(complaint({"train"}),
            "command line: --config FILE is missing (train needs one; configs/ holds examples)");
  EXPECT_EQ(complaint({"--confg", "x"}),
            "command line: --confg is not an option of train; did you mean --config?");
  EXPECT_EQ(complaint({"--config", "x", "steps"}),
            "command line: steps is not key=value (like train.steps=20)");
  EXPECT_EQ(complaint({"eval", "--config", "x", "--dry-run"}),
            "command line: --dry-run is not an option of eval");
  EXPECT_THAT(complaint({"--config"}), HasSubstr("command line: --config"));
  EXPECT_THAT(complaint({"plan", "--config", "x", "--ranks", "0"}), HasSubstr("command line: --ranks"));
  EXPECT_THAT(complaint({"plan", "--config", "x", "--ranks", "many"}), HasSubstr("command line: "));
  for (const char* number : {"040", "0x20", "+8", "8.0", "4'0"})
    EXPECT_THAT(complaint({"plan", "--config", "x", "--ranks", number}),
                HasSubstr("is not an integer in plain digits"));
  EXPECT_THAT(complaint({"plan", "--config", "x", "--simulate", "--ranks", "8..64"}),
              HasSubstr("command line: --ranks 8..64 compares plans, which --search makes"));
  EXPECT_THAT(complaint({"plan", "--config", "x", "--search", "--ranks", "64..8"}),
              HasSubstr("64..8 goes down (write it as 8..64)"));
  for (const char* seed : {"-3", "99999999999999999999999"})
    EXPECT_THAT(
        complaint({"data", "synthesize", "arithmetic", "--output", "out", std::string("--seed=") + seed}),
        HasSubstr(std::string(seed) + "' is not a seed"));
  EXPECT_EQ(parse({"data", "synthesize", "arithmetic", "--output", "out", "--seed", "18446744073709551615"})
                .data.seed,
            UINT64_MAX);
  EXPECT_THAT(complaint({"data"}), HasSubstr("command line: "));
  EXPECT_THAT(complaint({"data", "import"}), HasSubstr("command line: "));
  EXPECT_THAT(complaint({"--config", "x", "--config", "y"}), HasSubstr("command line: "));
}

}  // namespace
}  // namespace mindpipe
