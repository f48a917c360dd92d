#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "config/settings.h"
#include "core/check.h"

namespace mindpipe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// A configuration file that is gone after the test.
class File {
 public:
  explicit File(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("mindpipe_config_" + std::to_string(getpid()) + ".yaml")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const std::string enough = "run: {dir: runs/test}\ndata: {train: corpus}\n";

Config read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return read_config(File(enough + text).path(), overrides);
}

/// The sentence without the file's name: ":3: model.layers is ...".
std::string complaint(const std::string& text, const std::vector<std::string>& overrides = {},
                      Exit code = Exit::bad_configuration) {
  const File file(text);
  try {
    read_config(file.path(), overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    const std::string sentence = error.what();
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    return sentence.starts_with(file.path()) ? sentence.substr(file.path().size()) : sentence;
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}
std::string complaint_of(const std::string& line) { return complaint(enough + line); }
std::string override_complaint(const std::string& text, Exit code = Exit::bad_configuration) {
  return complaint(enough, {text}, code);
}

TEST(Config, ReadsWhatIsWrittenAndLeavesTheRestAtItsDefault) {
  const Config c = read(
      "model: {layers: 3, width: 96, heads: 6, bias: false}\noptimizer: {rate: {peak: 1.0e-3}, beta2: "
      "0.999}\nseed: "
      "18446744073709551615\n");
  EXPECT_EQ(c.model.gpt.layers, 3);
  EXPECT_EQ(c.model.gpt.width, 96);
  EXPECT_FALSE(c.model.gpt.bias);
  EXPECT_EQ(c.optimizer.rate.peak, 1e-3);
  EXPECT_EQ(c.optimizer.beta2, 0.999);
  EXPECT_EQ(c.seed, 18446744073709551615u);
  EXPECT_EQ(c.train.steps, TrainConfig().steps);
}

TEST(Config, ResolvesWhatWasLeftOut) {
  Config c = read("model: {width: 128, heads: 4, context: 64}\ntrain: {steps: 50}\n");
  EXPECT_EQ(c.model.gpt.key_value_heads, 4);
  EXPECT_EQ(c.model.gpt.mlp_width, 512);
  EXPECT_EQ(c.data.sequence, 64);
  EXPECT_EQ(c.optimizer.rate.decay, 50);
  EXPECT_EQ(c.reproducible.tensor, 1);
  EXPECT_EQ(read("model: {width: 4096, heads: 32, mlp: swiglu}\n").model.gpt.mlp_width, 10944);
  c = read("grid: {data: auto}\n");
  EXPECT_EQ(c.grid.data, 0);
  EXPECT_EQ(c.reproducible.data, 0);
  c.grid.data = 8;
  EXPECT_EQ(resolve(c).reproducible.data, 8);
  EXPECT_EQ(resolve(resolve(c)), resolve(c));
}

TEST(Config, ReadsSourcesInEveryForm) {
  const std::string run = "run: {dir: d}\n";
  const auto train = [&](const std::string& text) {
    return read_config(File(run + "data: {train: " + text + "}\n").path(), {}).data.train;
  };
  EXPECT_EQ(train("a"), (std::vector<DataSource>{{"a", 1}}));
  EXPECT_EQ(train("synthetic:arithmetic"), (std::vector<DataSource>{{"synthetic:arithmetic", 1}}));
  EXPECT_EQ(train("[a, {path: b, weight: 0.25}]"), (std::vector<DataSource>{{"a", 1}, {"b", 0.25}}));
  EXPECT_EQ(read("", {"data.train=[x/a,{path: b, weight: 2}]"}).data.train,
            (std::vector<DataSource>{{"x/a", 1}, {"b", 2}}));
  EXPECT_EQ(complaint(run + "data: {train: []}\n").substr(0, 34), ":2: data.train is an empty list; a");
  EXPECT_EQ(complaint(run + "data:\n  train:\n    - {path: a, wieght: 2}\n"),
            ":4: data.train.wieght is not a setting (a source has path and weight); did you mean weight?");
  EXPECT_EQ(complaint(run + "data: {train: [{path: a, weight: 0}]}\n"),
            ":2: data.train.weight is '0'; allowed: a number above 0 to 1000000000");
  EXPECT_EQ(complaint(run + "data: {train: [{weight: 1}]}\n"),
            ":2: data.train.path is missing; add it: where the tokens are");
}

TEST(Config, OverridesCountLast) {
  const Config c =
      read("train: {steps: 5}\n", {"train.steps=20", "grid.tensor=auto", "run.max_walltime=1h30m",
                                   "memory.device_limit=2 GiB", "train.steps=21"});
  EXPECT_EQ(c.train.steps, 21);
  EXPECT_EQ(c.grid.tensor, 0);
  EXPECT_EQ(c.run.max_walltime, 5400);
  EXPECT_EQ(c.memory.device_limit, 2ll << 30);
  EXPECT_EQ(read("", {"generate.prompt=To be: or # not"}).generate.prompt, "To be: or # not");
  EXPECT_EQ(read("", {"schedule.cuts=[3]", "grid.pipeline=2"}).schedule.cuts, std::vector<int>{3});
}

TEST(Config, ANumberMayCountForAllChannelsOrStandForEach) {
  const std::string model = "model: {kind: vit, mean: [0.485, 0.456, 0.406], deviation: 0.25}\n";
  const Config c = read(model);
  EXPECT_EQ(c.model.vit.mean, (std::vector{0.485, 0.456, 0.406}));
  EXPECT_EQ(c.model.vit.deviation, std::vector{0.25});
  EXPECT_EQ(read_config(File(to_yaml(c)).path(), {}), c);
  EXPECT_EQ(read(model, {"model.mean=[1]"}).model.vit.mean, std::vector{1.0});
  EXPECT_THAT(complaint_of("model: {kind: vit, mean: [0.4, 0.5]}\n"),
              EndsWith("model.mean has 2 numbers and model.channels is 3 (one for each channel, or one for "
                       "all)"));
  EXPECT_THAT(complaint_of("model: {kind: vit, deviation: [0.4, 0, 0.5]}\n"),
              HasSubstr("model.deviation is '0'; allowed: a number above 0 to 1, or a list of these"));
  EXPECT_THAT(complaint_of("model: {kind: vit, mean: []}\n"), HasSubstr("mean is an empty list; allowed"));
}

TEST(Config, PrintsWhatReadsBackToTheSameConfiguration) {
  Config c = read("");
  EXPECT_EQ(read_config(File(to_yaml(c)).path(), {}), c);

  c.seed = 18446744073709551615u;
  c.run.dir = "runs/with space: and #";
  c.generate.prompt = "\"Grüße\"\n\t\\ {a: [1]} 世界 🌍 'null' -";
  c.data.train = {{"synthetic:arithmetic", 1}, {"a b/c", 1.0 / 3}, {"null", 1}, {"-", 1}, {"1e5", 2}};
  c.data.validation = {{"true", 0.1}};
  c.optimizer.rate.peak = 0.1 + 0.2;
  c.optimizer.epsilon = 5e-324;
  c.model.gpt.rotary_base = 123456.789012345678;
  c.run.max_walltime = 1e-7;
  c.memory.device_limit = 9007199254740993;
  c.grid.pipeline = 3;
  c.schedule.cuts = {2, 5};
  c.grid.data = c.reproducible.data = 0;
  const Config back = read_config(File(to_yaml(c)).path(), {});
  EXPECT_EQ(back, c) << to_yaml(c);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(back.optimizer.rate.peak),
            std::bit_cast<std::uint64_t>(c.optimizer.rate.peak));
}

TEST(Config, NamesUnknownKeysWithTheNearestSpelling) {
  EXPECT_EQ(complaint_of("model:\n  layer: 3\n"),
            ":4: model.layer is not a setting; did you mean model.layers?");
  EXPECT_EQ(complaint_of("modle: {layers: 3}\n"), ":3: modle is not a setting; did you mean model?");
  EXPECT_EQ(complaint_of("steps: 3\n"), ":3: steps is not a setting; did you mean train.steps?");
  EXPECT_EQ(complaint_of("model: {batch: 3}\n"),
            ":3: model.batch is not a setting; did you mean train.batch?");
  EXPECT_EQ(complaint_of("xyzzyx: 3\n"), ":3: xyzzyx is not a setting (--help-config lists all of them)");
  EXPECT_THAT(complaint_of("model.layers: 3\n"),
              StartsWith(":3: 'model.layers' is one key with a dot in it"));
  EXPECT_EQ(override_complaint("train.stepz=3"),
            "command line: train.stepz is not a setting; did you mean train.steps?");
  EXPECT_EQ(override_complaint("train=3"),
            "command line: train is a section; set one of its settings, like train.norms_every");
  EXPECT_EQ(override_complaint("trian", Exit::usage),
            "command line: trian is not key=value (like train.steps=20)");
}

TEST(Config, RefusesWrongTypes) {
  EXPECT_EQ(complaint_of("model:\n  layers: four\n"),
            ":4: model.layers is 'four'; allowed: a whole number from 1 to 100000");
  EXPECT_EQ(complaint_of("model: {layers: [3]}\n"),
            ":3: model.layers is a list; allowed: a whole number from 1 to 100000");
  EXPECT_EQ(complaint_of("model: {layers: }\n"),
            ":3: model.layers has no value; allowed: a whole number from 1 to 100000");
  EXPECT_EQ(complaint_of("model: {layers: null}\n"),
            ":3: model.layers has no value; allowed: a whole number from 1 to 100000");
  EXPECT_THAT(
      complaint_of("model: {layers: \"12\"}\n"),
      HasSubstr("model.layers is \"12\"; allowed: a whole number from 1 to 100000; did you mean 12?"));
  EXPECT_THAT(complaint_of("model: 4\n"),
              StartsWith(":3: model is '4'; it is a section, with settings like model."));
  EXPECT_THAT(complaint_of("model:\n"),
              StartsWith(":3: model is empty; it is a section, with settings like model."));
  EXPECT_THAT(complaint_of("model: [1]\n"), StartsWith(":3: model is a list; it is a section"));
  EXPECT_THAT(complaint_of("schedule: {cuts: 3}\n"),
              HasSubstr("schedule.cuts is '3'; allowed: auto or a list of whole numbers from 1"));
  EXPECT_THAT(complaint("run: {dir: \"\"}\n"), HasSubstr("run.dir is \"\"; allowed: text that is not empty"));
  EXPECT_THAT(complaint("- a\n"),
              EndsWith("is a list (a configuration is a mapping of sections like model: and train:)"));
}

TEST(Config, ReadsIntegersInPlainDigitsOnly) {
  const auto layers = [](const std::string& value) {
    return complaint_of("model: {layers: " + value + "}\n");
  };
  EXPECT_THAT(layers("010"), EndsWith("did you mean 10?"));
  EXPECT_THAT(layers("1_000"), EndsWith("did you mean 1000?"));
  EXPECT_THAT(layers("1.0"), EndsWith("did you mean 1?"));
  for (const char* wrong : {"0x10", "1e2", "+3", "1.5", ".inf", "0o7", "99999999999999999999", "1 2", "0b1"})
    EXPECT_THAT(layers(wrong),
                HasSubstr(std::string("model.layers is '") + wrong + "'; allowed: a whole number"))
        << wrong;
}

TEST(Config, ReadsNumbersWithoutInfinityOrNan) {
  for (const char* wrong : {".inf", "-.inf", ".nan", "inf", "nan", "1e999", "1e-999", "1.", ".5", "0x1p3",
                            "1e", "1_0.0", "infinity"})
    EXPECT_THAT(complaint_of(std::string("optimizer: {rate: {peak: ") + wrong + "}}\n"),
                HasSubstr("optimizer.rate.peak is '"))
        << wrong;
  EXPECT_EQ(read("optimizer: {rate: {peak: 3}}\n").optimizer.rate.peak, 3);
  EXPECT_EQ(read("optimizer: {rate: {peak: 3.5E-2}}\n").optimizer.rate.peak, 0.035);
}

TEST(Config, ReadsTruthValuesInTwoWordsOnly) {
  EXPECT_THAT(complaint_of("model: {bias: yes}\n"),
              EndsWith("model.bias is 'yes'; allowed: true or false; did you mean true?"));
  for (const char* wrong : {"no", "on", "off", "True", "FALSE", "1", "0", "\"true\""})
    EXPECT_THAT(complaint_of(std::string("model: {bias: ") + wrong + "}\n"),
                HasSubstr("allowed: true or false"))
        << wrong;
}

TEST(Config, RefusesValuesOutOfRange) {
  EXPECT_EQ(complaint_of("model: {layers: 0}\n"),
            ":3: model.layers is '0'; allowed: a whole number from 1 to 100000");
  EXPECT_EQ(complaint_of("model: {vocabulary: -5}\n"),
            ":3: model.vocabulary is '-5'; allowed: auto or a whole number from 1 to 16777216");
  EXPECT_EQ(complaint_of("model: {dropout: 1}\n"),
            ":3: model.dropout is '1'; allowed: a number from 0 to below 1");
  EXPECT_EQ(complaint_of("generate: {top_p: 0}\n"),
            ":3: generate.top_p is '0'; allowed: a number above 0 to 1");
  EXPECT_EQ(complaint_of("schedule: {kind: 1f1B}\n"),
            ":3: schedule.kind is '1f1B'; allowed: auto or gpipe, 1f1b, interleaved, breadth-first, elastic, "
            "zb-h1, zb-v, v-half, dualpipe-v, searched, causal, bulk, free; did you mean 1f1b?");
  EXPECT_EQ(complaint_of("grid: {tensor: 0}\n"),
            ":3: grid.tensor is '0'; allowed: auto or a whole number from 1 to 1048576");
  EXPECT_THAT(complaint_of("seed: -1\n"),
              HasSubstr("seed is '-1'; allowed: a whole number from 0 to 18446744073709551615"));
  EXPECT_EQ(override_complaint("checkpoint.keep=1"),
            "command line: checkpoint.keep is '1'; allowed: a whole number from 2 to 1073741824");
}

TEST(Config, AnEvaluationMayGoOverAllAndAutoIsNoWordForThat) {
  const Config once = read("train: {evaluate_batches: all}\n");
  EXPECT_EQ(once.train.evaluate_batches, 0);
  EXPECT_THAT(to_yaml(once), HasSubstr("evaluate_batches: all\n"));
  EXPECT_EQ(read("", {"train.evaluate_batches=all"}).train.evaluate_batches, 0);
  EXPECT_EQ(complaint_of("train: {evaluate_batches: auto}\n"),
            ":3: train.evaluate_batches is 'auto'; allowed: all or a whole number from 1 to 1073741824");
  EXPECT_EQ(complaint_of("grid: {tensor: all}\n"),
            ":3: grid.tensor is 'all'; allowed: auto or a whole number from 1 to 1048576");
}

TEST(Config, RefusesWhatYamlAllowsAndAConfigurationDoesNot) {
  EXPECT_THAT(complaint_of("model: {layers: 3, layers: 4}\n"),
              StartsWith(":3: 'layers' is set a second time (the first is at "));
  EXPECT_THAT(complaint_of("model: {layers: 3}\nmodel: {width: 4}\n"),
              StartsWith(":4: 'model' is set a second time"));
  EXPECT_THAT(complaint_of("model: &a {layers: 3}\n"), StartsWith(":3: an anchor"));
  EXPECT_THAT(complaint_of("model: {layers: &a 3, heads: *a}\n"), StartsWith(":3: an anchor"));
  EXPECT_THAT(complaint_of("model: {layers: !!int 3}\n"), StartsWith(":3: a tag"));
  EXPECT_THAT(complaint_of("---\nseed: 2\n"), StartsWith(":3: a second document begins here"));
  EXPECT_THAT(complaint_of("model: {<<: {layers: 3}}\n"), StartsWith(":3: a merge key"));
  EXPECT_THAT(complaint_of("? [a]\n: 3\n"), StartsWith(":3: a list is used as a key"));
  EXPECT_THAT(complaint_of("model: {layers: 3\n"), HasSubstr("is not YAML ("));
  EXPECT_THAT(complaint_of("model: *nowhere\n"), HasSubstr("is not YAML ("));
  EXPECT_THAT(complaint_of(std::string("seed: 1\0\n", 9)), StartsWith(":3: holds the byte 0x00"));
  EXPECT_THAT(complaint_of("model: " + std::string(5000, '[')), StartsWith(":3: nested more than 16 deep"));
  EXPECT_THAT(override_complaint("model.layers=&a 3"), StartsWith("command line: model.layers: an anchor"));
}

TEST(Config, SaysWhatIsWrongWithTheFile) {
  const auto sentence = [](const std::string& file, Exit code) {
    try {
      read_config(file, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code, code);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(sentence("/nowhere/gpt.yaml", Exit::input_missing),
            "/nowhere/gpt.yaml: cannot be opened (No such file or directory; check the path, it is taken "
            "from the directory of the command)");
  EXPECT_EQ(sentence("/tmp", Exit::bad_configuration), "/tmp: not an ordinary file; name the file itself");
  EXPECT_EQ(sentence("/dev/zero", Exit::bad_configuration),
            "/dev/zero: not an ordinary file; name the file itself");
  EXPECT_EQ(complaint(""), ": is empty (a configuration names at least run.dir and data.train)");
  EXPECT_EQ(complaint("# nothing\n"), ": is empty (a configuration names at least run.dir and data.train)");
  EXPECT_EQ(complaint("run: {dir: d}\n"), ": data.train is missing; add it: what to train on");
  if (geteuid() == 0) return;  // root may read everything
  const File file(enough);
  std::filesystem::permissions(file.path(), std::filesystem::perms::none);
  EXPECT_EQ(sentence(file.path(), Exit::permission),
            file.path() + ": may not be read (Permission denied; ask its owner for access)");
}

/// What a kind asks for besides its name.
template <class Kind>
std::vector<std::string> asked_with(Kind) {
  return {"device.description=core"};
}
std::vector<std::string> asked_with(ModelKind kind) {
  if (kind != ModelKind::subnet && kind != ModelKind::supernet) return {"device.description=core"};
  const std::string space = "model.space={name: one, decoder: {blocks: 1, candidates: [glu]}}";
  return {space, kind == ModelKind::subnet ? "model.choice=[0]" : "seed=1"};
}
std::vector<std::string> asked_with(ScheduleKind kind) {
  return {"model.kind=" + std::string(row_of(kind).of_subnets ? "supernet" : "gpt"),
          asked_with(row_of(kind).of_subnets ? ModelKind::supernet : ModelKind::gpt).front(),
          row_of(kind).in_v ? "grid.pipeline=2" : "grid.pipeline=1"};
}

/// Each name of a setting's kinds reads as that kind and is written again, and --help-config allows these
/// names.
template <class Kind, class Member>
void expect_kinds(const std::string& key, Member member) {
  std::string allowed = key == "schedule.kind" ? "auto or " : "";
  for (const auto& row : rows_of(Kind{})) {
    std::vector<std::string> settings = asked_with(kind_named<Kind>(row.name).value());
    settings.push_back(key + "=" + std::string(row.name));
    const Config config = read("", settings);
    EXPECT_EQ(member(config), kind_named<Kind>(row.name)) << key << " " << row.name;
    const std::string line = key.substr(key.rfind('.') + 1) + ": " + quoted_if_needed(std::string(row.name));
    EXPECT_THAT(to_yaml(config), HasSubstr(line + "\n"));
    allowed += (allowed.empty() || allowed.ends_with("r ") ? "" : ", ") + std::string(row.name);
  }
  EXPECT_THAT(config_help(), HasSubstr("\n      Allowed: " + allowed + ".\n"));
  EXPECT_THAT(override_complaint(key + "=zz"), HasSubstr("is 'zz'; allowed: " + allowed));
}

TEST(Config, EveryKindIsReadAndWrittenByItsName) {
  expect_kinds<Background>("checkpoint.background", [](const Config& c) { return c.checkpoint.background; });
  expect_kinds<CheckpointWriterKind>("checkpoint.writer",
                                     [](const Config& c) { return c.checkpoint.writer; });
  expect_kinds<SaveFailure>("checkpoint.on_error", [](const Config& c) { return c.checkpoint.on_error; });
  expect_kinds<ModelKind>("model.kind", [](const Config& c) { return c.model.kind; });
  expect_kinds<Positions>("model.positions", [](const Config& c) { return c.model.gpt.positions; });
  expect_kinds<ModelNorm>("model.norm", [](const Config& c) { return c.model.gpt.norm; });
  expect_kinds<MlpKind>("model.mlp", [](const Config& c) { return c.model.gpt.mlp; });
  expect_kinds<ScheduleKind>("schedule.kind", [](const Config& c) { return c.schedule.kind; });
  expect_kinds<Precision>("train.precision", [](const Config& c) { return c.train.precision; });
  expect_kinds<RateKind>("optimizer.rate.kind", [](const Config& c) { return c.optimizer.rate.kind; });
  expect_kinds<OptimizerKind>("optimizer.kind", [](const Config& c) { return c.optimizer.kind; });
  expect_kinds<DeviceKind>("device.kind", [](const Config& c) { return c.device.kind; });
}

TEST(Config, EveryKindOfModelHasSettingsOfItsOwn) {
  const Config c = read("model: {layers: 3, kind: transformer}\n", {"data.source_sequence=40"});
  EXPECT_EQ(c.model.transformer.layers, 3);
  EXPECT_EQ(c.model.gpt, gpt::Settings()) << "another kind's are left alone";
  EXPECT_EQ(c.data.source_sequence, 40);
  EXPECT_EQ(read_config(File(to_yaml(c)).path(), {}), c);
  EXPECT_EQ(read("model: {layers: 3}\n", {"model.kind=transformer"}).model.transformer.layers, 3)
      << "the command line's kind counts";
  EXPECT_EQ(complaint("run: {dir: d}\nmodel: {kind: gpt, rotary_base: 5000}\ndata: {train: a}\n",
                      {"model.kind=transformer"}),
            ":2: transformer has no model.rotary_base (a setting of gpt; leave it out)");
  EXPECT_EQ(complaint_of("model: {kind: transformer, rotary_base: 5000}\n"),
            ":3: transformer has no model.rotary_base (a setting of gpt; leave it out)");
  EXPECT_EQ(complaint("run: {dir: d}\ndata: {train: a, source_sequence: 5}\n"),
            ":2: gpt has no data.source_sequence (a setting of transformer, evolved_transformer, "
            "subnet, supernet; leave it out)");
  EXPECT_EQ(override_complaint("data.source_sequence=5"),
            "command line: gpt has no data.source_sequence (a setting of transformer, evolved_transformer, "
            "subnet, supernet; leave it out)");
  const std::string misspelt = complaint_of("model: {kind: tranformer, layers: 3}\n");
  EXPECT_THAT(misspelt, HasSubstr("model.kind is 'tranformer'; allowed: gpt, bert, transformer, vit, "));
  EXPECT_THAT(misspelt, EndsWith("; did you mean transformer?"));
}

TEST(Config, HelpNamesEverySettingWithRangeAndDefault) {
  const std::string help = config_help();
  EXPECT_THAT(help, HasSubstr("model.dropout = 0\n      probability that an element of a residual branch is "
                              "dropped.\n      Allowed: a number from 0 to below 1.\n"));
  EXPECT_THAT(help, HasSubstr("run.dir = (required)"));
  const std::size_t gpt = help.find("\nmodel, where model.kind is gpt\n"),
                    transformer = help.find("\nmodel, where model.kind is transformer\n");
  ASSERT_NE(transformer, std::string::npos);
  EXPECT_LT(gpt, help.find("  model.rotary_base = "));
  EXPECT_LT(help.find("  model.rotary_base = "), transformer) << "only gpt has it";
  EXPECT_EQ(help.find("  model.rotary_base = ", transformer), std::string::npos);
  EXPECT_NE(help.find("\ndata, where model.kind is transformer\n  data.source_sequence = auto"),
            std::string::npos);
}

}  // namespace
}  // namespace mindpipe
