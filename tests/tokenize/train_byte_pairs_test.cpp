#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text.h"
#include "corpus/files.h"
#include "tokenize/tokenizer.h"
#include "tokenize/train_byte_pairs.h"

namespace mindpipe {
namespace {

using nlohmann::json;
using testing::ElementsAre;

json trained_on(const std::vector<std::string>& texts, const TrainingRules& rules) {
  const auto splits = splits_of(rules);
  WordCounts words(*splits);
  for (const std::string& text : texts) words.add(text);
  return json::parse(train_byte_pairs(rules, words.counts()).json);
}

std::vector<std::string> merges_in(const json& tokenizer) {
  std::vector<std::string> merges;
  for (const json& merge : tokenizer["model"]["merges"])
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  return merges;
}

TEST(TrainedBytePairs, AreThoseOfThePeer) {
  const std::string text = read_file(MINDPIPE_SOURCE_DIR "/data/alice.txt");
  const json made = trained_on({text}, {.vocabulary = 656});
  std::istringstream golden(read_file(MINDPIPE_SOURCE_DIR "/tests/golden/tokenizers/merges_of_alice.txt"));
  std::vector<std::string> wanted;
  for (std::string line; std::getline(golden, line);) wanted.push_back(line);
  ASSERT_EQ(wanted.size(), 400U);
  EXPECT_EQ(merges_in(made), wanted);
}

TEST(TrainedBytePairs, AreOfEqualCountsThoseWithSmallerIdsFirst) {
  // Pairs ab, bc, and ac stand twice each: a and b have the smaller ids.
  EXPECT_THAT(merges_in(trained_on({"ac", "bc", "ab", "ac", "bc", "ab"}, {.vocabulary = 259})),
              ElementsAre("a b", "a c", "b c"));
}

TEST(TrainedBytePairs, OverlapInNoWord) {
  // The word aaaa becomes two pairs, and then one of both.
  EXPECT_THAT(merges_in(trained_on({"aaaa", "aaaa", "aaa"}, {.vocabulary = 300})),
              ElementsAre("a a", "aa aa", "aa a"));
}

TEST(TrainedBytePairs, StandAsOftenAsIsAskedFor) {
  EXPECT_THAT(merges_in(trained_on({"xy", "xy", "xy", "pq"}, {.vocabulary = 300, .least_count = 2})),
              ElementsAre("x y"));
}

TEST(TrainedBytePairs, HaveTheSpecialTokensBeforeThem) {
  const json made = trained_on({"xy"}, {.vocabulary = 300, .special = {"<|end|>", "<|pad|>"}});
  EXPECT_EQ(made["model"]["vocab"]["<|end|>"], 0);
  EXPECT_EQ(made["model"]["vocab"]["<|pad|>"], 1);
  EXPECT_EQ(made["model"]["vocab"]["!"], 2);
  EXPECT_EQ(made["model"]["vocab"]["xy"], 258);
  EXPECT_EQ(made["added_tokens"][1]["content"], "<|pad|>");
}

TEST(TrainedBytePairs, AreATokenizerThatGivesBytesBack) {
  const Folder folder;
  for (const char* pattern : {"gpt2", "cl100k", "o200k", "llama3"}) {
    const TrainingRules rules{.vocabulary = 300, .special = {"<|endoftext|>"}, .pattern = pattern};
    const auto splits = splits_of(rules);
    WordCounts words(*splits);
    const std::string text = "the theme, the thesis \xff\xfe\xff\xfe\xff\xfe the 1234\r\n  the<|endoftext|>";
    words.add(text);
    write_file(folder / "tokenizer.json", train_byte_pairs(rules, words.counts()).json);
    const auto tokenizer = load_tokenizer(folder / "tokenizer.json");
    const auto ids = tokenizer->encoder()->encode(text);
    EXPECT_EQ(tokenizer->decode(ids, true), text);
    EXPECT_LT(ids.size(), text.size());
    EXPECT_EQ(ids.back(), tokenizer->special().end);
    EXPECT_TRUE(tokenizer->id_of("the").has_value());
  }
}

TEST(TrainedBytePairs, AreRefusedWhereRulesCannotBeFollowed) {
  const auto expect_refusal = [](const std::string& sentence, const TrainingRules& rules) {
    expect_error(Exit::usage, sentence, [&] { check_rules(rules); });
  };
  expect_refusal("a vocabulary of 256 tokens (expected 257 to", {.vocabulary = 256, .special = {"<s>"}});
  expect_refusal("a special token is named twice", {.vocabulary = 300, .special = {"<s>", "<s>"}});
  expect_refusal("the special token 'a' is the letter of a byte", {.vocabulary = 300, .special = {"a"}});
  expect_error(Exit::bad_configuration, "there is no pattern 'gpt5'",
               [] { check_rules({.vocabulary = 300, .pattern = "gpt5"}); });
}

}  // namespace
}  // namespace mindpipe
