#include "config/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/config.h"
#include "core/check.h"
#include "tiny_tokenizer.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Tokens : public testing::Test {
 protected:
  Tokens() : folder_(fs::temp_directory_path() / ("mindpipe_tokens_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Tokens() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Config read(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    std::ofstream(folder_ / "run.yaml") << "run: {dir: " << at("run") << "}\n" << text;
    return read_config(at("run.yaml"), overrides);
  }
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      return error.what();
    }
    return "none";
  }

 private:
  fs::path folder_;
};

const std::string bert = "model: {kind: bert}\n", gpt = "model: {kind: gpt}\n";

TEST_F(Tokens, VocabularyAndSpecialTokensAreTheTokenizers) {
  write_tiny_tokenizer(at("tokenizer.json"), {"</s>", "<s>", "<pad>", "<mask>"});
  const Config config = read(bert + "data: {train: corpus, tokenizer: " + at("tokenizer.json") + "}\n");
  EXPECT_EQ(config.model.bert.vocabulary, 265);
  EXPECT_EQ(config.data.special, (SpecialTokens{261, 262, 263, 264}));
  EXPECT_EQ(config.data.tokenizer_hash.size(), 64u);
  std::ofstream(at("resolved.yaml")) << to_yaml(config);
  EXPECT_EQ(read_config(at("resolved.yaml"), {}), config);
  const Config set =
      read(bert + "data: {train: corpus, tokenizer: " + at("tokenizer.json") + ", special: {mask: 5}}\n",
           {"model.vocabulary=300", "data.special.end=auto"});
  EXPECT_EQ(set.model.bert.vocabulary, 300);
  EXPECT_EQ(set.data.special, (SpecialTokens{261, 262, 263, 5}));
}

TEST_F(Tokens, AreBytesWhereNoTokenizerIsNamed) {
  const Config config = read(bert + "data: {train: corpus, special: {end: auto}}\n");
  EXPECT_EQ(config.data.special, SpecialTokens{});
  EXPECT_EQ(config.data.tokenizer_hash, "");
  EXPECT_THAT(refusal(gpt + "  \ndata: {train: corpus}\n").substr(0, 4), "none");
  EXPECT_THAT(refusal("model: {kind: gpt, vocabulary: auto}\ndata: {train: corpus}\n"),
              HasSubstr("model.vocabulary is auto, and data.tokenizer names no tokenizer"));
  EXPECT_THAT(refusal(gpt + "data: {train: corpus, tokenizer_hash: abc}\n"),
              HasSubstr("data.tokenizer_hash is set, and data.tokenizer names no tokenizer"));
}

TEST_F(Tokens, OfATokenizerThatIsLargerThanTheTableAreRefused) {
  EXPECT_THAT(
      refusal("model: {kind: gpt, vocabulary: 256}\ndata: {train: corpus, tokenizer: bytes}\n"),
      HasSubstr(
          "model.vocabulary is 256, and the tokenizer bytes has 257 tokens; set it to auto, or to 257"));
}

TEST_F(Tokens, OfAnotherFileUnderTheSameNameAreRefused) {
  write_tiny_tokenizer(at("tokenizer.json"));
  Config config = read(gpt + "data: {train: corpus, tokenizer: " + at("tokenizer.json") + "}\n");
  const std::string hash = config.data.tokenizer_hash;
  open_tokenizer(config.data);
  write_tiny_tokenizer(at("tokenizer.json"), {"<end>"});
  EXPECT_THROW(open_tokenizer(config.data), Error);
  EXPECT_NE(
      read(gpt + "data: {train: corpus, tokenizer: " + at("tokenizer.json") + "}\n").data.tokenizer_hash,
      hash);
}

TEST_F(Tokens, AreThoseOfTheCopyWhereTheOriginalIsGone) {
  write_tiny_tokenizer(at("tokenizer.json"));
  const std::string text = gpt + "data: {train: corpus, tokenizer: " + at("tokenizer.json") + "}\n";
  const Config before = read(text);
  keep_tokenizer(before);
  fs::remove(at("tokenizer.json"));
  const Config after = read(text);
  EXPECT_EQ(after.data.tokenizer, at("run/tokenizer"));
  EXPECT_EQ(after.data.tokenizer_hash, before.data.tokenizer_hash);
}

}  // namespace
}  // namespace mindpipe
