// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>

#include "app/the_program.h"
#include "core/check.h"

// What becomes of a start that finds a pipe, a folder, a device without end or a terabyte of nothing where it
// reads a file.
namespace mindpipe {
namespace {

using testing::HasSubstr;

const char* const kinds[] = {"pipe", "folder", "zeros", "terabyte"};

class HostileFiles : public TheProgram {
 protected:
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  void put(const std::string& kind, const std::string& name) const {
    const std::string file = path(name);
    fs::remove_all(file);
    fs::create_directories(fs::path(file).parent_path());
    if (kind == "pipe") {
      ASSERT_EQ(mkfifo(file.c_str(), 0666), 0);
    }
    if (kind == "folder") fs::create_directory(file);
    if (kind == "zeros") fs::create_symlink("/dev/zero", file);
    if (kind == "terabyte") {
      std::ofstream(file).close();
      fs::resize_file(file, std::uintmax_t{1} << 40);
    }
  }
  /// Runs the program within 256 MiB of data and 5 seconds, beyond which it is killed.
  Answer held(const std::string& arguments) const {
    return run_command("python3 " MINDPIPE_SOURCE_DIR "/tests/peak_memory.py " + path("peak") +
                       " timeout -s KILL 5 " + MINDPIPE_BINARY + " " + arguments);
  }
  /// Expects a sentence within little time and memory, and that exit code.
  void expect_sentence(const std::string& arguments, int code, const std::string& words) const {
    const Answer answer = held(arguments);
    EXPECT_EQ(answer.code, code) << arguments << ": " << answer.text.substr(0, 500);
    EXPECT_THAT(answer.text, HasSubstr(words)) << arguments;
    EXPECT_LT(answer.text.size(), 32u << 10) << arguments;
    EXPECT_LT(peak(), std::int64_t{256} << 20) << arguments;
  }
  std::int64_t peak() const {
    std::int64_t bytes = 0;
    std::ifstream(root_ / "peak.0") >> bytes;
    return bytes;
  }
  /// A text of `bytes` bytes: `begin`, as often as it fits `one`, whose @ is a number, and `end`.
  static std::string many(const std::string& begin, const std::string& one, std::size_t bytes,
                          const std::string& end) {
    std::string text = begin;
    const std::size_t at = one.find('@');
    for (int i = 0; text.size() + one.size() + 8 + end.size() < bytes; ++i) {
      text += (i > 0 ? "," : "") + one.substr(0, at);
      if (at != one.npos) text += std::to_string(i) + one.substr(at + 1);
    }
    text += end;
    return text + std::string(bytes - text.size(), ' ');
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }
  /// Puts each kind in the place of a file, and expects a sentence that names the file, in little time and
  /// memory.
  void expect_refused(const std::string& name, const std::string& arguments, std::vector<int> codes) const {
    for (const std::string kind : kinds) {
      put(kind, name);
      const Answer answer = held(arguments);
      EXPECT_THAT(codes, testing::Contains(answer.code)) << kind << " for " << name << ": " << answer.text;
      EXPECT_THAT(answer.text, HasSubstr("mindpipe-train: ")) << kind << " for " << name;
      EXPECT_THAT(answer.text, HasSubstr(fs::path(name).filename().string())) << kind << " for " << name;
      EXPECT_LT(peak(), std::int64_t{256} << 20) << kind << " for " << name;
      fs::remove_all(root_ / name);
    }
  }
  std::string train() const { return "train --config " + path("tiny.yaml") + " "; }
  std::string import() const { return "data import --output " + path("out") + " "; }
};

TEST_F(HostileFiles, AreRefusedAsConfigurationsAndTables) {
  expect_refused("other.yaml", "train --config " + path("other.yaml"), {78});
  expect_refused("profile.yaml",
                 "plan --simulate --config " + path("tiny.yaml") + " device.profile=" + path("profile.yaml"),
                 {65});
  expect_refused("forecast.csv",
                 "plan --simulate --config " + path("tiny.yaml") + " energy.forecast=" + path("forecast.csv"),
                 {65});
  expect_refused("hf/config.json", "import " + path("hf") + " --output " + path("imported.yaml"), {65, 78});
}

TEST_F(HostileFiles, AreRefusedAsData) {
  std::ofstream(root_ / "pairs.bin") << "tokens";
  for (const std::string name : {"text.txt", "pairs.idx"})
    expect_refused(name, train() + "data.train=[" + path(name) + "]", {65});
  const std::string of_pictures =
      "train --config " MINDPIPE_SOURCE_DIR "/configs/vit-tiny.yaml run.dir=" + path("vit");
  for (const std::string name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"})
    expect_refused(name, of_pictures + " data.train=[" + path(name) + "]", {65});
  expect_refused("batch.bin", of_pictures + " data.train=[cifar10:" + path("batch.bin") + "]", {65});
  const std::string of_pairs =
      "train --config " MINDPIPE_SOURCE_DIR "/configs/transformer-tiny.yaml run.dir=" + path("pairs");
  expect_refused("pairs.tsv", of_pairs + " data.train=[" + path("pairs.tsv") + "]", {65});
}

TEST_F(HostileFiles, AreRefusedByImports) {
  for (const std::string name : {"a.txt", "a.jsonl", "a.bin", "a.npy", "a.gz"})
    expect_refused(name, import() + path(name), {65});
  expect_refused("a.md", import() + "--format paragraphs " + path("a.md"), {65});
}

TEST_F(HostileFiles, AreRefusedAsTokenizersAndWeights) {
  for (const std::string name : {"tokenizer.json", "vocab.txt", "a.model"})
    expect_refused(name, train() + "model.vocabulary=auto data.tokenizer=" + path(name), {65, 66});
  expect_refused("a.safetensors", train() + "run.weights=" + path("a.safetensors"), {65, 66});
  expect_refused("parts/model.safetensors.index.json", train() + "run.weights=" + path("parts"), {65});
}

TEST_F(HostileFiles, AreRefusedInARunDirectoryWhoseStatusStaysTrue) {
  ASSERT_EQ(tiny("checkpoint.every=2").code, 0);
  const fs::path run = root_ / "run", kept = root_ / "kept";
  fs::copy(run, kept, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const std::string newest = "run/checkpoints/step-00000004/";
  for (const auto& [name, code] : {std::pair<std::string, int>{"run/lock", 65},
                                   {"run/status.json", 65},
                                   {"run/metrics.jsonl", 65},
                                   {"run/energy.json", 65}}) {
    expect_refused(name, train() + "train.steps=6", {code});
    if (name != "run/status.json" && name != "run/lock") {
      EXPECT_NE(nlohmann::json::parse(read("run/status.json"))["state"], "running") << name;
    }
    fs::remove_all(run);
    fs::copy(kept, run, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  for (const std::string name : {"manifest.json", "state.h5"})
    for (const std::string kind : kinds) {
      put(kind, newest + name);
      const Answer older = held(train() + "train.steps=6");
      EXPECT_EQ(older.code, 0) << kind << " for " << name << ": " << older.text;
      EXPECT_THAT(older.text, HasSubstr("step-00000002")) << kind << " for " << name;
      fs::remove_all(run);
      fs::copy(kept, run, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    }
}

TEST_F(HostileFiles, LeaveAStatusThatSaidRunningAsFailed) {
  ASSERT_EQ(tiny("checkpoint.every=2").code, 0);
  std::ofstream(root_ / "run/status.json") << "{\"state\": \"running\", \"step\": 4, \"reason\": \"\", "
                                              "\"checkpoint\": \"checkpoints/step-00000004\"}\n";
  for (const char* name : {"step-00000002", "step-00000004"})
    fs::resize_file(root_ / "run/checkpoints" / name / "state.h5", 100);
  const Answer none = tiny("train.steps=6");
  EXPECT_EQ(none.code, 80) << none.text;
  const auto status = nlohmann::json::parse(read("run/status.json"));
  EXPECT_EQ(status["state"], "failed");
  EXPECT_THAT(status["reason"].get<std::string>(), HasSubstr("no checkpoint is whole"));
}

TEST_F(HostileFiles, OfManyKeysAreReadInATimeThatFollowsTheirBytes) {
  std::ofstream keys(root_ / "keys.yaml");
  for (int i = 0; i < 100000; ++i) keys << "k" << i << ": 1\n";
  keys.close();
  const Answer many = held("train --config " + path("keys.yaml"));
  EXPECT_EQ(many.code, 78) << many.text.substr(0, 500);
}

// Texts of the largest size that is read at all.
TEST_F(HostileFiles, OfManyValuesAreReadInATimeAndAMemoryThatFollowTheirBytes) {
  constexpr std::size_t most = std::size_t{16} << 20;
  const std::string import_it = "import " + path("hf") + " --output " + path("imported.yaml");
  const std::string begin = R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","x":[)";
  for (const char* one : {"{}", "[]", "1", "\"\"", R"({"a@":{}})"})
    for (const char* open : {"", R"({"b":[)"}) {
      write("hf/config.json", many(begin + open, one, most, *open == '\0' ? "]}" : "]}]}"));
      expect_sentence(import_it, 78, "config.json: ");
    }
  write("hf/config.json", many("{", R"("a@":{})", most, "}"));
  expect_sentence(import_it, 78, "config.json: ");
  write("hf/config.json", "{\"model_type\":\"" + std::string(most - 20, 'x') + "\"}");
  expect_sentence(import_it, 78, "config.json: ");
  for (const char* one :
       {R"("a@":{})", R"("a@":[])", R"("a@":"b")", R"("a@":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})",
        R"("a@":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", R"("__metadata__":{},"a@":{})"}) {
    const std::string header = many("{", one, most, "}");
    const std::uint64_t bytes = header.size();
    write("many.safetensors", std::string(reinterpret_cast<const char*>(&bytes), 8) + header);
    expect_sentence(train() + "run.weights=" + path("many.safetensors"), 65, "many.safetensors: ");
    write("parts/model.safetensors.index.json", many(R"({"weight_map":{)", one, most, "}}"));
    expect_sentence(train() + "run.weights=" + path("parts"), 65, "index.json: ");
  }
  const std::string header = "{\"transformer.h." + std::string(most - 100, 'x') +
                             ".attn.bias\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}";
  const std::uint64_t bytes = header.size();
  write("name.safetensors", std::string(reinterpret_cast<const char*>(&bytes), 8) + header);
  expect_sentence(train() + "run.weights=" + path("name.safetensors"), 65, "name.safetensors: has no ");
  for (const char* one : {R"("a@":{})", R"("a@":[{},{}])", R"("a@":1)"}) {
    write("tokenizer.json", many(R"({"model":{"type":"BPE","vocab":{)", one, std::size_t{64} << 20, "}}}"));
    expect_sentence(train() + "model.vocabulary=auto data.tokenizer=" + path("tokenizer.json"), 65,
                    "tokenizer.json: ");
  }
}

TEST_F(HostileFiles, AndSettingsThatAskForMoreThanAnyMachineHasAreRefusedBySize) {
  expect_sentence(train() + "train.steps=1000000000", 78, "the order of its samples is too long");
  expect_sentence(train() + "train.steps=1000000000 grid.data=1 train.batch=2", 78, "train fewer steps");
  write("subnet.yaml",
        "run: {dir: " + path("subnet") +
            "}\nmodel: {kind: subnet, width: 16, context: 16, vocabulary: 256, choice: [0], space: {name: x, "
            "decoder: {blocks: 1, candidates: [mlp-999999]}}}\ndata: {train: [" MINDPIPE_SOURCE_DIR
            "/data/alice.txt]}\n");
  expect_sentence("train --config " + path("subnet.yaml"), 78, "beyond 4194304");
}

}  // namespace
}  // namespace mindpipe
