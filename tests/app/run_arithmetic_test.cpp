// The name of a training's arithmetic, over the whole table of settings: a program of its own, alone
// thorough
#include "app/run/run_arithmetic.h"
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "app/arithmetic_of.h"
#include "app/run/agreement.h"
#include "app/run/run_history.h"
#include "config/settings.h"
#include "core/check.h"
#include "core/sha256.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;
/// Values that a setting may be able to have.
Overrides candidates_of(const Setting& setting) {
  Overrides values{"true", "false", "1",      "2",   "3",  "4",   "8",      "16",   "64",        "0.5",
                   "0.25", "0.125", "32",     "0",   "7",  "[1]", "[4, 8]", "1GiB", "elsewhere", "30m",
                   "h100", "50",    "[0, 1]", "[5]", "12", "128", "256",    "1e-7", "auto",      "100"};
  const std::string written = setting.written(), allowed = setting.allowed();
  if (const double number = std::strtod(written.c_str(), nullptr); number > 0)
    values.insert(values.begin(), {fmt::format("{}", number * 2), fmt::format("{}", number / 2)});
  std::string words = allowed;
  for (const std::string beginning : {"auto or ", "a list of some of "})
    if (words.starts_with(beginning)) words.erase(0, beginning.size());
  std::istringstream all(words);
  for (std::string word; std::getline(all, word, ',');) {
    word.erase(0, word.find_first_not_of(' '));
    values.insert(values.end(), {word, "[" + word + "]"});
  }
  if (const std::size_t zero = written.find('0'); zero != std::string::npos)  // of a list
    values.push_back(std::string(written).replace(zero, 1, "1"));
  return values;
}

/// What a setting needs beside it before it can have another value, and perhaps that value.
struct Beside {
  const char* key;
  const char* configuration;
  Overrides settings;
  const char* value = "";
};
const Beside beside[] = {
    {"optimizer.momentum", "gpt-tiny", {"optimizer.kind=sgd"}, "0.5"},
    {"optimizer.nesterov", "gpt-tiny", {"optimizer.kind=sgd", "optimizer.momentum=0.5"}, "true"},
    {"schedule.chunks", "gpt-tiny", {"grid.pipeline=2", "schedule.kind=breadth-first"}, "2"},
    {"schedule.cuts", "gpt-tiny", {"grid.pipeline=2"}, "[3]"},
    {"repartition.at", "gpt-tiny", {"grid.pipeline=2"}, "[{step: 5, cuts: [3]}]"},
    {"repartition.every", "gpt-tiny", {"grid.pipeline=2"}, "7"},
    {"schedule.groups.forward", "gpt-tiny", {"grid.pipeline=2", "schedule.kind=elastic"}, "[2, 2]"},
    {"schedule.groups.backward", "gpt-tiny", {"grid.pipeline=2", "schedule.kind=elastic"}, "[2, 2]"},
    {"schedule.memory", "gpt-tiny", {"grid.pipeline=2", "schedule.kind=searched"}, "2"},
    {"supernet.spacing", "supernet-tiny", {"supernet.sampler=spaced"}, "1"},
    {"supernet.sampler", "supernet-tiny", {}, "spaced"},
    {"supernet.cuts", "supernet-tiny", {"grid.pipeline=2"}, "own"},
    {"model.space", "supernet-tiny", {}, "nlp.c3"},
    {"supernet.prices", "supernet-tiny", {}, "paper"},
    {"model.qkv_bias", "gpt-tiny", {"model.bias=false"}, "true"},
    {"model.rotary_scaling", "gpt-tiny", {"model.positions=rotary"}, "llama3"},
    {"energy.carbon_intensity", "gpt-tiny", {"energy.source=RTE", "energy.carbon_intensity=40"}, "50"},
    {"energy.source", "gpt-tiny", {"energy.source=RTE", "energy.carbon_intensity=40"}, "REE"},
    {"energy.deadline", "gpt-tiny", {"energy.forecast=hours.csv"}, "36h"},
    {"energy.duration", "gpt-tiny", {"energy.forecast=hours.csv"}, "12h"},
    {"search.limits.latency", "supernet-tiny", {"search.searcher=pareto", "device.description=h100"}, "1"},
};

/// Settings that nobody can change alone, or that count by something else, which tests below change.
const std::map<std::string, const char*> counted_elsewhere{
    {"model.kind", "each kind has settings of its own: the names of all configurations differ"},
    {"device.kind", "the kernels answer for it"},
    {"device.kernels", "by its contents, on a GPU alone: CountsWhatAGpuAloneTakes"},
    {"device.attention_beyond", "on a GPU alone: CountsWhatAGpuAloneTakes"},
    {"device.reserved_multiprocessors", "on a GPU alone: CountsWhatAGpuAloneTakes"},
    {"device.profile", "a file that mindpipe-train profile has measured on this machine"},
    {"data.tokenizer", "by its contents, which data.tokenizer_hash has"},
    {"data.tokenizer_hash", "is refused beside another tokenizer: NamedFiles.TakeATokenizerByItsContents"},
    {"run.weights", "by its contents: NamedFiles.CountByTheirContents"},
    {"run.new_head", "beside run.weights: NamedFiles.CountByTheirContents"},
};

/// The configuration with another value of this setting alone, if some value is allowed and changes it.
std::optional<Config> changed(const std::string& name, const Setting& setting, const Overrides& others = {},
                              const std::string& wanted = "") {
  Overrides values = candidates_of(setting);
  if (!wanted.empty()) values = {wanted};
  for (const std::string& value : values) try {
      Overrides all = others;
      all.push_back(setting.key() + "=" + value);
      Config other = shards_of(name, all);
      for (const Setting& one : settings_of(other))
        if (one.key() == setting.key() && one.written() != setting.written()) return other;
    } catch (const Error&) {  // a value that the setting, or another one beside it, does not allow
    }
  return std::nullopt;
}

constexpr const char* of_all_kinds[] = {"gpt-tiny",
                                        "bert-tiny",
                                        "transformer-tiny",
                                        "vit-tiny",
                                        "evolved-transformer-tiny",
                                        "wide-resnet-tiny",
                                        "subnet-tiny",
                                        "supernet-tiny",
                                        "supernet-pictures-tiny"};

/// Holds the names of arithmetic against changes of settings, each alone, and remembers which were changed.
class ChangesOfSettings {
 public:
  void see(const std::string& name, const Setting& setting, const Overrides& others = {},
           const std::string& value = "") {
    all_.insert(setting.key());
    // A setting that all kinds have is looked at once.
    const std::string where = setting.key().starts_with("model.") ? name : "";
    if (counted_elsewhere.contains(setting.key()) || done_.contains({where, setting.key()})) return;
    const std::optional<Config> other = changed(name, setting, others, value);
    if (!other) return;
    done_.insert({where, setting.key()});
    const bool is_arithmetic = setting.role() == Setting::Role::arithmetic;
    EXPECT_EQ(arithmetic_at(*other).name() != arithmetic_at(shards_of(name, others)).name(), is_arithmetic)
        << name << ": " << setting.key();
    (is_arithmetic ? arithmetic_ : others_).insert(setting.key());
  }
  /// No setting of any kind was left out.
  void require_all() const {
    for (const std::string& key : all_)
      EXPECT_TRUE(arithmetic_.contains(key) || others_.contains(key) || counted_elsewhere.contains(key))
          << key << ": no value is known that changes it";
    for (const auto& [key, why] : counted_elsewhere) EXPECT_TRUE(all_.contains(key)) << key << ": " << why;
    std::cout << arithmetic_.size() << " settings change the name, " << others_.size() << " do not, "
              << counted_elsewhere.size() << " are looked at elsewhere\n";
  }

 private:
  std::set<std::string> all_, arithmetic_, others_;
  std::set<std::pair<std::string, std::string>> done_;
};

TEST(ArithmeticName, ChangesWithEveryArithmeticSettingAndWithNoOther) {
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);  // where configurations look for their files
  ChangesOfSettings changes;
  for (const char* name : of_all_kinds) {
    Config config = shards_of(name, {});
    for (const Setting& setting : settings_of(config)) changes.see(name, setting);
  }
  for (const auto& [key, name, settings, value] : beside) {
    Config config = shards_of(name, settings);
    for (const Setting& setting : settings_of(config))
      if (setting.key() == key) changes.see(name, setting, settings, value);
  }
  changes.require_all();
  std::set<std::string> names;
  for (const char* name : of_all_kinds) names.insert(arithmetic_at(shards_of(name, {})).name());
  EXPECT_EQ(names.size(), std::size(of_all_kinds));
}

TEST(ArithmeticName, IsThatOfEveryGridAndThread) {
  const std::string one = arithmetic_at(shards_of("gpt-tiny", {})).name();
  int layouts = 0;
  for (const char* pipeline : {"1", "2"})
    for (const char* data : {"1", "2"})
      for (const char* tensor : {"1", "2"})
        for (const char* zero : {"0", "1", "2"})
          for (const char* threads : {"1", "7"}) {
            const Config config = shards_of(
                "gpt-tiny", {fmt::format("grid.pipeline={}", pipeline), fmt::format("grid.data={}", data),
                             fmt::format("grid.tensor={}", tensor), fmt::format("train.zero={}", zero),
                             fmt::format("device.threads={}", threads)});
            EXPECT_EQ(arithmetic_at(config, fmt::format("cpu: avx512, {} threads", threads)).name(), one);
            ++layouts;
          }
  EXPECT_EQ(layouts, 48);
}

/// The text of an arithmetic with other words at one place.
std::string with_other_words(std::string text, const std::string& words, const std::string& others) {
  const std::size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << words;
  return at == std::string::npos ? text : text.replace(at, words.size(), others);
}

TEST(ArithmeticName, ChangesWithCompilerFlagsAndFunctions) {
  const RunArithmetic one = arithmetic_at(shards_of("gpt-tiny", {}));
  for (const auto& [words, others] : {std::pair("-ffp-contract=off", "-ffp-contract=fast"),
                                      {"-mavx2 -mfma", "-mavx2"},
                                      {"compiler: g++ ", "compiler: g++ 99"},
                                      {"functions of real numbers: 1", "functions of real numbers: 2"}})
    EXPECT_NE(RunArithmetic(with_other_words(one.text(), words, others)).name(), one.name()) << words;
  EXPECT_EQ(one.text().find("C library"), std::string::npos) << "none of its functions touches a bit";
}

TEST(ArithmeticName, CountsWhatAGpuAloneTakes) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "mindpipe_gpu_arithmetic";
  std::filesystem::create_directories(folder);
  const auto table = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
    return fmt::format("device.kernels={}", (folder / name).string());
  };
  const auto name = [](const char* kind, const std::string& setting) {
    return arithmetic_at(shards_of("gpt-tiny", {fmt::format("device.kind={}", kind), setting}), "some device")
        .name();
  };
  const std::string on_gpu = name("cuda", "seed=1"), on_cpu = name("cpu", "seed=1");
  for (const char* setting : {"device.attention_workspace=1GiB", "device.attention_beyond=own"}) {
    EXPECT_NE(name("cuda", setting), on_gpu) << setting;
    EXPECT_EQ(name("cpu", setting), on_cpu) << setting;
  }
  EXPECT_NE(name("cuda", "device.reserved_multiprocessors=16"), on_gpu);
  const std::string one = table("one", "a table"), moved = table("moved", "a table"),
                    other = table("other", "b table");
  EXPECT_NE(name("cuda", one), on_gpu);
  EXPECT_EQ(name("cuda", one), name("cuda", moved));
  EXPECT_NE(name("cuda", one), name("cuda", other));
  std::filesystem::remove_all(folder);
}

TEST(ArithmeticName, CountsAUnitForBf16InBf16Alone) {
  const auto name = [](const char* precision, const char* kernels) {
    return arithmetic_at(shards_of("gpt-tiny", {fmt::format("train.precision={}", precision)}), kernels)
        .name();
  };
  EXPECT_EQ(name("f32", "cpu: avx512+amx, 1 thread"), name("f32", "cpu: avx512, 2 threads"));
  EXPECT_NE(name("bf16", "cpu: avx512+amx, 1 thread"), name("bf16", "cpu: avx512, 2 threads"));
  EXPECT_EQ(name("f32", "cpu: avx2, 1 thread"), name("f32", "cpu: avx512, 2 threads"));
  EXPECT_EQ(name("bf16", "cpu: avx2, 1 thread"), name("bf16", "cpu: avx512, 2 threads"));
  EXPECT_NE(name("f32", "cpu: baseline, 1 thread"), name("f32", "cpu: avx512, 2 threads"));
}

TEST(ArithmeticName, SaysWhichPartDiffersFirst) {
  const RunArithmetic one = arithmetic_at(shards_of("gpt-tiny", {})),
                      other = arithmetic_at(shards_of("gpt-tiny", {"seed=77"}));
  EXPECT_EQ(first_difference(one, one, "here", "there"), "");
  EXPECT_THAT(first_difference(other, one, "here", "there"), HasSubstr("seed is 77 here and "));
  EXPECT_EQ(RunArithmetic(one.text()).name(), one.name());
  const RunArithmetic old("cpu: avx512");
  EXPECT_FALSE(old.has_name());
  EXPECT_EQ(first_difference(one, old, "here", "there"), "");
  EXPECT_EQ(first_difference(one, RunArithmetic("cpu: baseline"), "here", "in the checkpoint"),
            "kernels is cpu: avx2 or avx512 here and cpu: baseline in the checkpoint");
}

/// What two runs' other bits mean after 100 steps.
std::string meaning(const RunHistory& one, const RunHistory& other) {
  return meaning_of_other_bits(one, other, 100, "in the first", "in the second");
}

TEST(ArithmeticName, SaysOfOtherBitsWhichCaseItIs) {
  const RunArithmetic arithmetic = arithmetic_at(shards_of("gpt-tiny", {})),
                      other = arithmetic_at(shards_of("gpt-tiny", {"seed=77"}));
  const WrittenSettings clip_1{{"train.clip", "1"}}, clip_2{{"train.clip", "2"}};
  const RunHistory one(nullptr, arithmetic, clip_1);
  EXPECT_THAT(meaning(one, one), HasSubstr("a machine or the program is broken"));
  EXPECT_THAT(meaning(one, RunHistory(nullptr, other, clip_1)),
              testing::AllOf(testing::StartsWith("their arithmetic has two names ("),
                             HasSubstr("so other bits are no wonder: seed is ")));
  EXPECT_THAT(meaning(one, RunHistory(nullptr, arithmetic, clip_2)),
              HasSubstr("but not their course: train.clip is 1 in the first and 2 in the second"));
  EXPECT_THAT(meaning(one, RunHistory(nullptr, RunArithmetic("cpu: avx512"), clip_1)),
              HasSubstr("before arithmetic had a name"));
}

TEST(ArithmeticName, KnowsWithWhatEarlierStepsWereComputed) {
  const RunArithmetic wide = arithmetic_at(shards_of("gpt-tiny", {})),
                      plain = arithmetic_at(shards_of("gpt-tiny", {}), "cpu: baseline, 2 threads");
  const WrittenSettings clip_1{{"train.clip", "1"}}, clip_2{{"train.clip", "2"}};
  const auto went_on = [](const RunHistory& before, std::int64_t step, const RunArithmetic& arithmetic,
                          const WrittenSettings& settings) {
    Manifest manifest;
    manifest.progress.step = step;
    manifest.arithmetic = before.eras().back().arithmetic.text();
    manifest.settings = before.eras().back().settings;
    manifest.earlier = before.earlier();
    return RunHistory(&manifest, arithmetic, settings);
  };
  const RunHistory whole(nullptr, wide, clip_1),
      again = went_on(whole, 40, wide, clip_1), other_class = went_on(whole, 40, plain, clip_1),
      back = went_on(other_class, 60, wide, clip_1), other_course = went_on(whole, 30, wide, clip_2);
  EXPECT_EQ(again.eras().size(), 1U);
  EXPECT_EQ(back.eras().size(), 3U);
  EXPECT_THAT(meaning(whole, again), HasSubstr("a machine or the program is broken"));
  EXPECT_THAT(meaning(whole, other_class),
              testing::AllOf(testing::StartsWith("in steps 41 to 100 their arithmetic has two names"),
                             HasSubstr("kernels is cpu: avx2 or avx512 in the first and cpu: baseline")));
  EXPECT_THAT(meaning(back, whole), testing::StartsWith("in steps 41 to 60 their arithmetic has two names"));
  EXPECT_THAT(meaning(whole, other_course),
              testing::AllOf(testing::StartsWith("in steps 31 to 100 their arithmetic is one"),
                             HasSubstr("but not their course: train.clip is 1 in the first and 2")));
  EXPECT_THAT(meaning_of_other_bits(whole, back, 40, "", ""), HasSubstr("is broken"));
}

TEST(ArithmeticName, HasTheLayoutWhereASupernetKeepsNoCausalOrder) {
  const auto name = [](const Overrides& more) {
    return arithmetic_at(shards_of("supernet-tiny", more)).name();
  };
  for (const ScheduleKind kind : {ScheduleKind::causal, ScheduleKind::free, ScheduleKind::bulk}) {
    const std::string schedule = fmt::format("schedule.kind={}", kind);
    const bool follows = kind != ScheduleKind::causal;
    const std::string one = name({schedule});
    for (const char* layout : {"grid.pipeline=2", "supernet.admission=4", "supernet.prices=paper"})
      EXPECT_EQ(name({schedule, layout}) != one, follows) << schedule << ' ' << layout;
    EXPECT_EQ(name({schedule, "device.threads=3"}), one);
  }
}

std::string digest_of_golden(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(MINDPIPE_SOURCE_DIR "/tests/golden/" + name).rdbuf();
  Sha256 digest;
  const std::string all = text.str();
  digest.add(all.data(), all.size());
  return to_string(digest.end()).substr(0, 16);
}

// Whoever moves golden bits counts one of the numbers on that run_arithmetic.cpp and portable_math.h fix, and
// writes the digest here.
TEST(ArithmeticName, CountsOnWhereGoldenHashesMove) {
  std::string fixed;
  const RunArithmetic arithmetic = arithmetic_at(shards_of("gpt-tiny", {}));
  for (const char* counted : {"rounding points", "random streams", "order of samples", "kernels by shape",
                              "functions of real numbers"})
    for (const auto& [part, value] : arithmetic.parts())
      if (part == counted) fixed += value + " ";
  EXPECT_EQ(fixed + digest_of_golden("parity_hashes.txt"), "1 1 1 1 1 77e67ed82334a269");
  EXPECT_EQ(fixed + digest_of_golden("tiny_hashes.txt"), "1 1 1 1 1 dd3b5631c6a88ab5");
  EXPECT_EQ(fixed + digest_of_golden("function_digests.txt"), "1 1 1 1 1 e19ce457befa298e");
  EXPECT_EQ(fixed + digest_of_golden("shape_digests.txt"), "1 1 1 1 1 a002af92d11534af");
}

}  // namespace
}  // namespace mindpipe
