// Inputs of a training by their contents: a program of its own, alone
#include "app/run/run_inputs.h"
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/arithmetic_of.h"
#include "io/manifest.h"

namespace mindpipe {
namespace {

/// A folder with files that a configuration names.
class NamedFiles : public testing::Test {
 protected:
  NamedFiles() { std::filesystem::create_directories(folder_); }
  ~NamedFiles() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  /// The contents that count of a configuration with this setting.
  static std::string inputs(const std::string& setting) {
    return inputs_of(shards_of("gpt-tiny", {setting}));
  }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_ = std::filesystem::temp_directory_path() / "mindpipe_arithmetic";
};

TEST_F(NamedFiles, CountByTheirContents) {
  struct Named {
    const char* what;
    std::vector<std::string> files;
    const char* setting;
  };
  for (const auto& [what, files, setting] :
       {Named{"a text", {"a.txt"}, "data.train=[{}a.txt]"},
        {"a text that is turned", {"a.txt"}, "data.train=[reversed:{}a.txt]"},
        {"tokens", {"tok.bin", "tok.idx", "tok.mask"}, "data.train=[{}tok]"},
        {"tokens by their file", {"tok.bin", "tok.idx"}, "data.train=[{}tok.bin]"},
        {"pairs", {"s.bin", "s.idx", "t.bin", "t.idx"}, "data.train=[pairs:{0}s:{0}t]"},
        {"pictures",
         {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
         "data.train=[{}train-images-idx3-ubyte]"},
        {"packed pictures",
         {"x-images-idx4-ubyte.gz", "x-labels-idx1-ubyte.gz"},
         "data.train=[{}x-images-idx4-ubyte.gz]"},
        {"pictures with labels", {"batch.bin"}, "data.train=[cifar10:{}batch.bin]"},
        {"weights", {"model.safetensors"}, "run.weights={}model.safetensors"},
        {"a folder of weights",
         {"w/model-1.safetensors", "w/model.safetensors.index.json"},
         "run.weights={}w"}}) {
    const auto at = [&](const std::string& folder) {
      return inputs(fmt::format(fmt::runtime(setting), path(folder + "/")));
    };
    for (const char* folder : {"one", "moved"})
      for (const std::string& file : files) write(fmt::format("{}/{}", folder, file), "contents of " + file);
    const std::string one = at("one");
    EXPECT_EQ(at("moved"), one) << what;
    EXPECT_EQ(one.find("/one/"), std::string::npos) << what << ": " << one;
    for (const std::string& file : files) {
      write("moved/" + file, "Contents of " + file);
      EXPECT_NE(at("moved"), one) << what << ": " << file;
      write("moved/" + file, "contents of " + file);
    }
    EXPECT_EQ(at("moved"), one) << what;
  }
}

/// Who saved a checkpoint, on which grid, is nothing that a bit depends on.
TEST_F(NamedFiles, OfACheckpointWhatItHoldsCounts) {
  Manifest manifest;
  manifest.created_by = "mindpipe 1";
  manifest.grid = {{"data", 1}};
  manifest.file_bytes = 8;
  manifest.crcs = {7};
  manifest.tensors = {{"/model/a", {2}, 0, 8}};
  const auto at = [&] {
    const std::string file = write("step/manifest.json", text_of(manifest));
    return inputs("run.weights=" + std::filesystem::path(file).parent_path().string());
  };
  const std::string one = at();
  manifest.created_by = "mindpipe 2";
  manifest.grid = {{"data", 2}};
  manifest.restarts = 3;
  EXPECT_EQ(at(), one);
  manifest.crcs = {8};
  EXPECT_NE(at(), one);
  manifest.crcs = {7};
  manifest.tensors.front().path = "/model/b";
  EXPECT_NE(at(), one);
}

TEST_F(NamedFiles, BesideTheWeightsThatAreReadDoNotCount) {
  const std::string weights = write("w/model.safetensors", "weights");
  const std::string folder = "run.weights=" + std::filesystem::path(weights).parent_path().string();
  const std::string one = inputs(folder);
  write("w/other.safetensors", "nobody reads these");
  EXPECT_EQ(inputs(folder), one);
}

TEST_F(NamedFiles, CountAsTheyAreRead) {
  const std::string text = write("a.txt", "one text");
  EXPECT_NE(inputs("data.train=[" + text + "]"), inputs("data.train=[reversed:" + text + "]"));
  EXPECT_NE(inputs("data.train=[synthetic:arithmetic]"), inputs("data.train=[synthetic:dates]"));
  const std::string weights = "run.weights=" + write("model.safetensors", "weights");
  const Config config = shards_of("gpt-tiny", {weights}),
               head = shards_of("gpt-tiny", {weights, "run.new_head=true"});
  EXPECT_NE(inputs_of(config), inputs_of(head));
  EXPECT_NE(inputs_of(config), inputs("seed=1"));
  // A run that goes on reads no weights to begin with, which may be gone.
  const RunArithmetic begun = arithmetic_at(config);
  EXPECT_EQ(inputs_of(shards_of("gpt-tiny", {}), beginning_among(begun.text())), inputs_of(config));
}

TEST_F(NamedFiles, OfManyBytesCountFromTheFirstToTheLast) {
  const std::string file = write("long.txt", ""), setting = "data.train=[" + file + "]";
  const std::int64_t bytes = (std::int64_t{65} << 20) + 100;
  const auto with_one_at = [&](std::int64_t place) {
    std::filesystem::resize_file(file, 0);
    std::filesystem::resize_file(file, static_cast<std::uintmax_t>(bytes));
    if (place >= 0) std::fstream(file, std::ios::in | std::ios::out).seekp(place).put('1');
    return inputs(setting);
  };
  const std::string zeros = with_one_at(-1);
  EXPECT_NE(with_one_at(0), zeros);
  EXPECT_NE(with_one_at(bytes - 1), zeros);
}

TEST_F(NamedFiles, TakeATokenizerByItsContents) {
  const std::filesystem::path golden = MINDPIPE_SOURCE_DIR "/tests/golden/tokenizers";
  const auto name = [](const std::string& file) {
    return arithmetic_at(shards_of("gpt-tiny", {"data.tokenizer=" + file, "model.vocabulary=1000000"}))
        .name();
  };
  std::filesystem::create_directories(path("moved"));
  std::filesystem::copy_file(golden / "gpt2.json", path("moved/tokenizer.json"));
  EXPECT_EQ(name(path("moved/tokenizer.json")), name(golden / "gpt2.json"));
  EXPECT_NE(name(golden / "words.json"), name(golden / "gpt2.json"));
  const std::string ranks = golden / "gpt2.tiktoken";
  EXPECT_EQ(name(ranks + ":gpt2"), name(ranks)) << "the pattern of its name";
  EXPECT_NE(name(ranks + ":llama3"), name(ranks));
}

}  // namespace
}  // namespace mindpipe
