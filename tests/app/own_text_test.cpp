#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "app/the_program.h"

// A user's own text: from a folder of packed JSON lines through a tokenizer to a model that writes.
namespace mindpipe {
namespace {

using testing::HasSubstr;

class OwnText : public TheProgram {
 protected:
  OwnText() {
    fs::create_directories(root_ / "texts");
    for (const char* name : {"a.jsonl.zst", "b.jsonl.zst"}) {
      std::string lines;
      for (int i = 0; i < 300; ++i)
        lines += nlohmann::json{{"text",
                                 "The cat in " + std::string(name) + " counts the mice " + std::to_string(i)}}
                     .dump() +
                 "\n";
      std::string packed(ZSTD_compressBound(lines.size()), '\0');
      packed.resize(ZSTD_compress(packed.data(), packed.size(), lines.data(), lines.size(), 3));
      std::ofstream(root_ / "texts" / name, std::ios::binary) << packed;
    }
    std::ofstream(root_ / "own.yaml") << "seed: 3\n"
                                         "model: {kind: gpt, layers: 2, width: 32, heads: 2, context: 32}\n"
                                         "reproducible: {tensor: 2, data: 2}\n"
                                         "train: {steps: 4, batch: 8, micro_batch: 2}\n"
                                         "generate: {prompt: \"The cat\", tokens: 20}\n"
                                         "device: {threads: 1}\n";
  }
  std::string import_command(const std::string& more = "") const {
    return "data import " + (root_ / "texts").string() + " --end-of-text --output " +
           (root_ / "tokens").string() + " " + more;
  }
  std::string settings(const std::string& run, const std::string& more = "") const {
    return " --config " + (root_ / "own.yaml").string() + " run.dir=" + (root_ / run).string() +
           " data.train=" + (root_ / "tokens").string() + " " + more;
  }
  std::string with_tokenizer() const { return "data.tokenizer=" + tokenizer_; }
  Answer on_four_ranks(const std::string& arguments) const {
    return run_command(MINDPIPE_SOURCE_DIR "/tests/run_mpi.sh 4 " MINDPIPE_BINARY " " + arguments);
  }

  std::string tokenizer_ = "bytes";
};

TEST_F(OwnText, FromAFolderOfPackedLinesToAModelThatWritesWithTheSameBitsOnFourRanks) {
  const Answer imported = run(import_command("--tokenizer " + tokenizer_));
  ASSERT_EQ(imported.code, 0) << imported.text;
  EXPECT_THAT(imported.text, HasSubstr("in 600 documents from 2 files; the vocabulary is 257"));
  const Answer one = run("train" + settings("one", with_tokenizer()));
  ASSERT_EQ(one.code, 0) << one.text;
  const Answer four =
      on_four_ranks("train" + settings("four", with_tokenizer() + " grid.pipeline=2 grid.data=2"));
  ASSERT_EQ(four.code, 0) << four.text;
  EXPECT_EQ(read("one/model.safetensors"), read("four/model.safetensors"));
  const std::string resolved = read("one/config.yaml");
  EXPECT_THAT(resolved, HasSubstr("vocabulary: 257"));
  EXPECT_THAT(resolved, testing::ContainsRegex("tokenizer_hash: \"?[0-9a-f]{64}"));
  const Answer written = run("generate" + settings("one", with_tokenizer()));
  EXPECT_EQ(written.code, 0) << written.text;
  EXPECT_THAT(written.text, HasSubstr("The cat"));
  const Answer inspected = run("data inspect " + (root_ / "tokens").string());
  EXPECT_THAT(inspected.text, HasSubstr("as text: The cat in a.jsonl.zst counts the mice 0<end>The cat"));
}

}  // namespace
}  // namespace mindpipe
