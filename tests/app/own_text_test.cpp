#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "app/the_program.h"
#include "tiny_tokenizer.h"

// A user's own text: from a folder of packed JSON lines through a tokenizer to a model that writes.
namespace mindpipe {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

/// What stands behind a tokenizer's name.
const std::string hash = " .SHA-256 [0-9a-f]{16}.";

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
    write_tiny_tokenizer(tokenizer_, {"<|endoftext|>", "<|im_start|>", "<|im_end|>"});
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

  std::string tokenizer_ = (root_ / "tokenizer.json").string();
};

TEST_F(OwnText, FromAFolderOfPackedLinesToAModelThatWritesWithTheSameBitsOnFourRanks) {
  const Answer imported = run(import_command("--tokenizer " + tokenizer_));
  ASSERT_EQ(imported.code, 0) << imported.text;
  EXPECT_THAT(imported.text, HasSubstr("in 600 documents from 2 files; the vocabulary is 264"));
  const Answer one = run("train" + settings("one", with_tokenizer()));
  ASSERT_EQ(one.code, 0) << one.text;
  const Answer four =
      on_four_ranks("train" + settings("four", with_tokenizer() + " grid.pipeline=2 grid.data=2"));
  ASSERT_EQ(four.code, 0) << four.text;
  EXPECT_EQ(read("one/model.safetensors"), read("four/model.safetensors"));
  const std::string resolved = read("one/config.yaml");
  EXPECT_THAT(resolved, HasSubstr("vocabulary: 264"));
  EXPECT_THAT(resolved, ContainsRegex("tokenizer_hash: \"?[0-9a-f]{64}"));
  const Answer written = run("generate" + settings("one", with_tokenizer()));
  EXPECT_EQ(written.code, 0) << written.text;
  EXPECT_THAT(written.text, HasSubstr("The cat"));
  const Answer inspected = run("data inspect " + (root_ / "tokens").string());
  EXPECT_THAT(inspected.text,
              HasSubstr("as text: The cat in a.jsonl.zst counts the mice 0<|endoftext|>The cat"));
}

TEST_F(OwnText, IsNotWrittenByAnotherTokenizerThanTheRuns) {
  ASSERT_EQ(run(import_command("--tokenizer " + tokenizer_)).code, 0);
  ASSERT_EQ(run("train" + settings("run", with_tokenizer())).code, 0);
  const std::string other = (root_ / "other.json").string();
  write_tiny_tokenizer(other, {"<|endoftext|>", "<|one|>", "<|two|>"});
  const Answer refused = run("generate" + settings("run", "data.tokenizer=" + other));
  EXPECT_EQ(refused.code, 78) << refused.text;
  EXPECT_THAT(refused.text,
              ContainsRegex("was trained with the tokenizer " + (root_ / "run/tokenizer").string() + hash +
                            ", and data.tokenizer is " + other + hash));
}

TEST_F(OwnText, GoesOnFromTheCopyOfItsTokenizer) {
  ASSERT_EQ(run(import_command("--tokenizer " + tokenizer_)).code, 0);
  ASSERT_EQ(run("train" + settings("run", with_tokenizer() + " train.steps=2")).code, 0);
  EXPECT_EQ(read("run/tokenizer/tokenizer.json"), read("tokenizer.json"));
  fs::rename(tokenizer_, root_ / "gone.json");
  const Answer on = run("train" + settings("run", with_tokenizer() + " train.steps=4"));
  EXPECT_EQ(on.code, 0) << on.text;
  EXPECT_THAT(on.text, HasSubstr("going on from"));
  write_tiny_tokenizer(tokenizer_, {"<|endoftext|>", "<|other|>", "<|im_end|>"});
  const Answer other = run("train" + settings("run", with_tokenizer() + " train.steps=6"));
  EXPECT_EQ(other.code, 78) << other.text;
  EXPECT_THAT(other.text, HasSubstr("data.tokenizer_hash is"));
}

TEST_F(OwnText, OfAnotherTokenizerIsRefusedByTrainingEvaluationAndGeneration) {
  ASSERT_EQ(run(import_command()).code, 0);  // bytes
  const Answer refused = run("train" + settings("run", with_tokenizer()));
  EXPECT_EQ(refused.code, 78) << refused.text;
  EXPECT_THAT(refused.text, ContainsRegex("tokens.json: its tokens are those of the tokenizer bytes" + hash +
                                          ", and the run's data.tokenizer is " + tokenizer_ + hash));
  ASSERT_EQ(run("train" + settings("run", "model.vocabulary=257")).code, 0);
  const Answer written = run("generate" + settings("run", with_tokenizer()));
  EXPECT_EQ(written.code, 78) << written.text;
  EXPECT_THAT(written.text, ContainsRegex("tokens.json: its tokens are those of the tokenizer bytes" + hash +
                                          ", and the run's data.tokenizer is " + tokenizer_ + hash));
  fs::remove(root_ / "tokens.bin");
  fs::remove(root_ / "tokens.idx");
  fs::remove(root_ / "tokens.json");
  ASSERT_EQ(run(import_command("--tokenizer " + tokenizer_)).code, 0);
  const Answer evaluated =
      run("eval" + settings("run", "model.vocabulary=257 data.validation=" + (root_ / "tokens").string()));
  EXPECT_EQ(evaluated.code, 78) << evaluated.text;
  EXPECT_THAT(evaluated.text,
              ContainsRegex("tokens.json: its tokens are those of the tokenizer " + tokenizer_ + hash +
                            ", and the run's data.tokenizer is bytes" + hash));
  const Answer small = run("train" + settings("small", with_tokenizer() + " model.vocabulary=100"));
  EXPECT_EQ(small.code, 78) << small.text;
  EXPECT_THAT(small.text, HasSubstr("model.vocabulary is 100, and the tokenizer"));
}

TEST_F(OwnText, WithAnIdBeyondTheVocabularyIsRefusedWithItsPlace) {
  ASSERT_EQ(run(import_command("--tokenizer " + tokenizer_)).code, 0);
  fs::remove(root_ / "tokens.json");  // whose tokens they are is not known then
  const Answer refused = run("train" + settings("run", "model.vocabulary=256"));
  EXPECT_EQ(refused.code, 65) << refused.text;
  EXPECT_THAT(refused.text,
              ContainsRegex((root_ / "tokens.bin").string() +
                            ": document [0-9]+, position [0-9]+: token 2[56][0-9] .expected 0 to 255"));
}

TEST_F(OwnText, LacksAKeyInALineThatIsNamed) {
  std::ofstream(root_ / "texts/c.jsonl") << "{\"text\": \"a\"}\n{\"body\": \"b\"}\n";
  const Answer refused = run(import_command());
  EXPECT_EQ(refused.code, 65) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("c.jsonl: line 2: there is no key 'text' (the keys are: body)"));
  EXPECT_FALSE(fs::exists(root_ / "tokens.bin") || fs::exists(root_ / "tokens.bin.unfinished"));
}

TEST_F(OwnText, OfConversationsLearnsAnswersAlone) {
  std::ofstream(root_ / "chats.jsonl")
      << R"({"messages":[{"role":"user","content":"in?"},{"role":"assistant","content":"the a"}]})"
         "\n"
      << R"({"messages":[{"role":"user","content":"b"},{"role":"assistant","content":"no<|im_end|>"}]})"
         "\n";
  const Answer imported =
      run("data import " + (root_ / "chats.jsonl").string() + " --template chatml --tokenizer " + tokenizer_ +
          " --output " + (root_ / "tokens").string());
  ASSERT_EQ(imported.code, 0) << imported.text;
  const Answer inspected = run("data inspect --show 100 " + (root_ / "tokens").string());
  EXPECT_THAT(
      inspected.text,
      HasSubstr("as text: <|im_start|>user\\nin?<|im_end|>\\n<|im_start|>assistant\\n⟦the a<|im_end|>⟧\\n"
                "<|im_start|>user\\nb<|im_end|>\\n<|im_start|>assistant\\n⟦no<|im_end|><|im_end|>⟧\\n"));
  const Answer trained = run("train" + settings("run", with_tokenizer() + " train.batch=4"));
  ASSERT_EQ(trained.code, 0) << trained.text;
  EXPECT_THAT(trained.text, HasSubstr("2 conversations of"));
  const Answer asked =
      run("generate" + settings("run", with_tokenizer() + " train.batch=4 data.template=chatml"));
  EXPECT_EQ(asked.code, 0) << asked.text;
}

TEST_F(OwnText, ComesBackFromIds) {
  const Answer there = run_command("printf 'the cat<|endoftext|>\\n\\303\\251 in a\\n' | " MINDPIPE_BINARY
                                   " data encode --tokenizer " +
                                   tokenizer_);
  EXPECT_EQ(there.text, "116 257 32 99 97 116 261\n195 169 32 260 256\n");
  const Answer back =
      run_command("printf '116 257 32 99 97 116 261\\n195 169 32 260 256\\n' | " MINDPIPE_BINARY
                  " data decode --tokenizer " +
                  tokenizer_);
  EXPECT_EQ(back.text, "the cat<|endoftext|>\n\xc3\xa9 in a\n");
}

}  // namespace
}  // namespace mindpipe
