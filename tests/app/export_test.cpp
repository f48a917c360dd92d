// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/the_program.h"

// ckpt export as a user calls it: what says how files are written, and what memory that takes.
namespace mindpipe {
namespace {

using testing::HasSubstr;

struct Export : TheProgram {
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string newest(const std::string& name) const { return path(name) + "/checkpoints/step-00000001"; }
  Answer trained(const std::string& name, const std::string& settings) const {
    return tiny("train.steps=1 train.evaluate_every=0 checkpoint.every=1 run.dir=" + path(name) + " " +
                settings);
  }
  Answer exported(const std::string& name, const std::string& output, const std::string& how = "") const {
    return run("ckpt export " + newest(name) + " --output " + path(output) + " " + how);
  }
  std::map<std::string, std::string> files_in(const std::string& name) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(root_ / name))
      if (entry.is_regular_file()) {
        const std::string file = entry.path().filename();
        if (file.find("safetensors") != file.npos || file == "config.json")
          all[file] = read(name + "/" + file);
      }
    return all;
  }
};

TEST_F(Export, WritesWhatTheRunOrTheCommandLineSays) {
  ASSERT_EQ(trained("plain", "").code, 0);
  const auto plain = files_in("plain");
  int number = 0;
  for (const std::string how : {"export.part=20000", "export.precision=bf16", "export.names=mindspore",
                                "export.part=20000 export.precision=bf16"}) {
    const std::string name = "run" + std::to_string(number++);
    ASSERT_EQ(trained(name, how).code, 0) << how;
    ASSERT_EQ(exported(name, "by-" + name).code, 0) << how;
    ASSERT_EQ(exported("plain", "as-" + name, how).code, 0) << how;
    ASSERT_EQ(
        exported(name, "not-" + name, "export.part=1000000 export.precision=f32 export.names=transformers")
            .code,
        0)
        << how;
    EXPECT_TRUE(files_in("by-" + name) == files_in(name)) << how << ": the run's own";
    EXPECT_TRUE(files_in("as-" + name) == files_in(name)) << how << ": of the command line";
    EXPECT_TRUE(files_in("not-" + name) == plain) << how << ": the command line has the last word";
    EXPECT_FALSE(files_in(name) == plain) << how;
  }
  ASSERT_EQ(exported("run1", "one.safetensors").code, 0);
  EXPECT_TRUE(read("one.safetensors") == read("run1/model.safetensors")) << "one file is written alike";
  EXPECT_THAT(exported("plain", "two.safetensors", "export.part=20000").text, HasSubstr("is one file"));
  for (const char* other : {"train.steps=3", "export", "export.nothing=1"})
    EXPECT_NE(exported("plain", "none", other).code, 0) << other;
  EXPECT_FALSE(fs::exists(root_ / "none/model.safetensors"));
}

// The larger model has tensors of 32 MB, of which GPT-2's matrices lie transposed in files.
TEST_F(Export, TakesNoMoreMemoryForALargerModel) {
  const std::string narrow = "model.heads=8 model.width=256 model.vocabulary=8192",
                    wide = "model.heads=8 model.width=1024 model.vocabulary=8192";
  std::vector<std::int64_t> peaks;
  for (const std::string& model : {narrow, wide})
    for (const char* how : {"", "export.precision=bf16 export.part=10000000"}) {
      const std::string name = "run" + std::to_string(peaks.size());
      ASSERT_EQ(trained(name, model).code, 0);
      const Answer answer = run_command("python3 " MINDPIPE_SOURCE_DIR "/tests/peak_memory.py " +
                                        path("peak") + " " + MINDPIPE_BINARY + " ckpt export " +
                                        newest(name) + " --output " + path("out" + name) + " " + how);
      ASSERT_EQ(answer.code, 0) << answer.text;
      std::ifstream(root_ / "peak.0") >> peaks.emplace_back();
    }
  EXPECT_GT(fs::file_size(root_ / "run2/model.safetensors"),
            4 * fs::file_size(root_ / "run0/model.safetensors"));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(peaks[i], std::int64_t{4} << 20);
    EXPECT_LT(peaks[2 + i] - peaks[i], std::int64_t{8} << 20) << peaks[i] << " " << peaks[2 + i];
  }
}

}  // namespace
}  // namespace mindpipe
