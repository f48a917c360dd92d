// The name of a training's arithmetic, over the whole table of settings: a program of its own, alone
// thorough
#include "app/run/run_arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "app/plan/grid_choice.h"
#include "app/run/agreement.h"
#include "config/settings.h"
#include "core/check.h"
#include "core/sha256.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;
using Overrides = std::vector<std::string>;

constexpr const char* here = "cpu: avx512, 2 threads";

Config shards_of(const std::string& name, const Overrides& more) {
  Overrides all{"reproducible.data=2", "reproducible.tensor=2"};
  all.insert(all.end(), more.begin(), more.end());
  const Config config = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/" + name + ".yaml", all);
  return on_paper(config, ranks_of_grid(config));
}

RunArithmetic arithmetic_at(const Config& config, const std::string& kernels = here) {
  return RunArithmetic(config, kernels, inputs_of(config));
}

/// Values that a setting may be able to have.
Overrides candidates_of(const Setting& setting) {
  Overrides values{"true", "false", "1", "2", "3", "4", "8", "16", "64", "0.5", "0.25", "0.125", "32", "0"};
  const std::string written = setting.written(), allowed = setting.allowed();
  if (const double number = std::strtod(written.c_str(), nullptr); number > 0)
    values.insert(values.begin(), {fmt::format("{}", number * 2), fmt::format("{}", number / 2)});
  std::istringstream words(allowed.starts_with("one of ") ? allowed.substr(7) : "");
  for (std::string word; std::getline(words, word, ',');) {
    word.erase(0, word.find_first_not_of(' '));
    values.push_back(word);
  }
  return values;
}

/// The configuration with another value of this setting alone, if some value is allowed and changes it.
std::optional<Config> changed(const std::string& name, const Setting& setting) {
  for (const std::string& value : candidates_of(setting)) try {
      Config other = shards_of(name, {setting.key() + "=" + value});
      for (const Setting& one : settings_of(other))
        if (one.key() == setting.key() && one.written() != setting.written()) return other;
    } catch (const Error&) {  // a value that the setting, or another one beside it, does not allow
    }
  return std::nullopt;
}

TEST(ArithmeticName, ChangesWithEveryArithmeticSettingAndWithNoLayout) {
  // Kernels answer for these, and what they resolve to is a part of its own.
  const std::set<std::string> of_kernels{"device.kind"};
  std::filesystem::current_path(MINDPIPE_SOURCE_DIR);  // where configurations look for their files
  std::set<std::string> arithmetic, layout;
  for (const char* name : {"gpt-tiny", "bert-tiny", "vit-tiny", "supernet-tiny"}) {
    Config config = shards_of(name, {});
    const std::string known = arithmetic_at(config).name();
    for (const Setting& setting : settings_of(config)) {
      if (of_kernels.contains(setting.key()) || setting.role() == Setting::Role::course) continue;
      const std::optional<Config> other = changed(name, setting);
      if (!other) continue;
      const bool is_arithmetic = setting.role() == Setting::Role::arithmetic;
      EXPECT_EQ(arithmetic_at(*other).name() != known, is_arithmetic) << name << ": " << setting.key();
      (is_arithmetic ? arithmetic : layout).insert(setting.key());
    }
  }
  EXPECT_GE(arithmetic.size(), 25U);
  EXPECT_GE(layout.size(), 45U);
  std::cout << arithmetic.size() << " arithmetic settings, " << layout.size() << " of the layout\n";
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

TEST(ArithmeticName, TakesFilesByTheirContents) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "mindpipe_arithmetic";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return fmt::format("data.train={}", (folder / name).string());
  };
  const std::string one = arithmetic_at(shards_of("gpt-tiny", {write("a.txt", "one text")})).name();
  EXPECT_EQ(arithmetic_at(shards_of("gpt-tiny", {write("b.txt", "one text")})).name(), one);
  EXPECT_NE(arithmetic_at(shards_of("gpt-tiny", {write("a.txt", "one tex2")})).name(), one);
  std::filesystem::remove_all(folder);
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
  EXPECT_EQ(first_difference(one, one, "there"), "");
  EXPECT_THAT(first_difference(other, one, "in the checkpoint"), HasSubstr("seed is 77 here and "));
  EXPECT_EQ(RunArithmetic(one.text()).name(), one.name());
  const RunArithmetic old("cpu: avx512");
  EXPECT_FALSE(old.has_name());
  EXPECT_EQ(first_difference(one, old, "in the checkpoint"), "");
  EXPECT_EQ(first_difference(one, RunArithmetic("cpu: baseline"), "in the checkpoint"),
            "kernels is cpu: avx2 or avx512 here and cpu: baseline in the checkpoint");
  EXPECT_THAT(meaning_of_other_bits(one, one, ""), HasSubstr("a machine or the program is broken"));
  EXPECT_THAT(meaning_of_other_bits(one, other, ""), HasSubstr("so other bits are no wonder: seed is "));
  EXPECT_THAT(meaning_of_other_bits(one, one, "train.clip is 1 in the first and 2 in the second"),
              HasSubstr("but not their course: train.clip"));
  EXPECT_THAT(meaning_of_other_bits(one, old, ""), HasSubstr("before arithmetic had a name"));
}

// Whoever moves golden bits counts one of the numbers on that run_arithmetic.cpp fixes, and writes the digest
// here.
TEST(ArithmeticName, CountsOnWhereGoldenHashesMove) {
  std::ifstream file(MINDPIPE_SOURCE_DIR "/tests/golden/parity_hashes.txt");
  std::stringstream text;
  text << file.rdbuf();
  Sha256 digest;
  const std::string all = text.str();
  digest.add(all.data(), all.size());
  std::string fixed;
  const RunArithmetic arithmetic = arithmetic_at(shards_of("gpt-tiny", {}));
  for (const auto& [part, value] : arithmetic.parts())
    if (part == "rounding points" || part == "random streams" || part == "order of samples" ||
        part == "kernels by shape")
      fixed += value + " ";
  EXPECT_EQ(fixed + to_string(digest.end()).substr(0, 16), "1 1 1 1 77e67ed82334a269");
}

}  // namespace
}  // namespace mindpipe
