#include "tokenize/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "corpus/files.h"
#include "tokenize/pre_tokenizer.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

struct Pieces final : PieceSink {
  void take(const TextPiece& piece) override { texts.emplace_back(piece.text); }
  std::vector<std::string> texts;
};

std::vector<std::string> split(const std::string& pattern, const std::string& text,
                               const std::string& behavior = "Isolated", bool invert = false) {
  const auto splits = make_pre_tokenizer(
      {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", behavior}, {"invert", invert}});
  Matcher matcher;
  Pieces pieces;
  splits->split({text, true}, matcher, pieces);
  return pieces.texts;
}

/// What a pattern matches of a text, as the library tokenizers finds it.
std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  return split(pattern, text, "Removed", true);
}

void refuse(const std::string& pattern, const std::string& construct) {
  SCOPED_TRACE(pattern);
  expect_error(Exit::bad_data, "has " + construct + ", which is not built", [&] { matches(pattern, "a"); });
}

TEST(PatternsOfOniguruma, HaveClassesWithinClasses) {
  EXPECT_THAT(matches("[a-c[x-z]]+", "axb]yc]]"), ElementsAre("axb", "yc"));
  EXPECT_THAT(matches(R"( ?[^(\s|[.,!?])]+)", "Hi (you), a|b."), ElementsAre("Hi", "you", " a", "b"));
  EXPECT_THAT(matches("[a-z&&[^aeiou]]+", "hello"), ElementsAre("h", "ll"));
  EXPECT_THAT(matches("[^a-z&&[^aeiou]]+", "he llo"), ElementsAre("e ", "o"));
  EXPECT_THAT(matches(R"([\p{L}\p{M}&&[^\p{Han}]]+)", "ab\u4f60c"), ElementsAre("ab", "c"));
  EXPECT_THAT(matches("[x[a-f&&b-e]]+", "abxef"), ElementsAre("bxe"));
  EXPECT_THAT(matches("[a[^b]]+", "ab!"), ElementsAre("a", "!"));
  EXPECT_THAT(matches(R"([\Wa]+)", "a-b"), ElementsAre("a-"));
  EXPECT_THAT(matches("[[:alpha:]]+", "\u0915\u093f!\u2167"), ElementsAre("\u0915\u093f", "\u2167"));
  EXPECT_THAT(matches("[[:punct:]]+", "a$b\u00a9-c"), ElementsAre("$", "\u00a9-"));
  EXPECT_THAT(matches("[^[:^alpha:]b]+", "ab1c"), ElementsAre("a", "c"));
}

TEST(PatternsOfOniguruma, RepeatAsItRepeats) {
  EXPECT_THAT(matches("a{1,2}+", "aaaaa"), ElementsAre("aaaaa"));
  EXPECT_THAT(matches(R"(\p{N}{1,3}+1)", "12341"), ElementsAre("12341"));
  EXPECT_THAT(matches("a{2}?b", "aab"), ElementsAre("aab"));
  EXPECT_THAT(matches("xa{2}?b", "xb xab"), ElementsAre("xb"));
  EXPECT_THAT(matches(R"(\p{N}{,3}x)", "12345x"), ElementsAre("345x"));
  EXPECT_THAT(matches("a{,}", "aa{,}"), ElementsAre("a{,}"));
  EXPECT_THAT(matches("a++a|b", "aab"), ElementsAre("b"));
}

TEST(PatternsOfOniguruma, HaveItsLettersAndWords) {
  EXPECT_THAT(matches(R"(\h+)", "ab g 1F"), ElementsAre("ab", "1F"));
  EXPECT_THAT(matches(R"([\Hx]+)", "abx g"), ElementsAre("x g"));
  EXPECT_THAT(matches(R"(\w+)", "a\u200db x\u00b2"), ElementsAre("a", "b", "x\u00b2"));
  EXPECT_THAT(matches(R"([\w]+)", "x\u00b2"), ElementsAre("x"));
  EXPECT_THAT(matches(R"(\b\S)", "ab \u20dd"), ElementsAre("a", "\u20dd"));
  EXPECT_THAT(matches(R"([\u4e00-\u9fff]+)", "a\u4f60\u597d"), ElementsAre("\u4f60\u597d"));
  EXPECT_THAT(matches(R"(a\Ob)", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(matches(R"(\v)", "\v\n"), ElementsAre("\v"));
  EXPECT_THAT(matches(R"(\p{Han}+)", "\u4f60\u3001"), ElementsAre("\u4f60"));
  EXPECT_THAT(matches("^a|b$", "a\nab\nb"), ElementsAre("a", "a", "b", "b"));
  EXPECT_THAT(matches("(?m:a.)b", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(matches("x(?i)a|b", "xA B xB"), ElementsAre("xA", "xB"));
  EXPECT_THAT(matches("'(?i:[sdmt]|ll|ve|re)", "I'LL 've'S"), ElementsAre("'LL", "'ve", "'S"));
}

TEST(PatternsOfOniguruma, SplitWhereTheyMatchNothing) {
  EXPECT_THAT(split(R"(\b)", "ab c"), ElementsAre("ab", " ", "c"));
  EXPECT_THAT(split(R"(\b)", "ab c", "Contiguous", true), ElementsAre("ab", " ", "c"));
  EXPECT_THAT(split("b*", "abbcb"), ElementsAre("a", "bb", "c", "b"));
  EXPECT_THAT(split("b*", "abbcb", "MergedWithPrevious"), ElementsAre("abb", "cb"));
}

TEST(PatternsOfOniguruma, AreRefusedByWhatPcre2ReadsDifferently) {
  refuse("(?i)ss", "'ss' under (?i)");
  refuse("(?i)(?:s)s", "'ss' under (?i)");
  refuse("(?i:stra\u00dfe)", "'st' under (?i)");
  refuse("(?i:\u00df)", "a character beyond ASCII under (?i)");
  refuse("(?i)[\u00df]", "a character beyond ASCII under (?i)");
  refuse(R"((?i)[\w])", R"(\w within a class under (?i))");
  refuse(R"((?i)\p{Lu})", R"(\p{Lu} under (?i))");
  refuse("(?i)[a[^b]]", "a class of classes under (?i)");
  refuse("[[:graph:]]", "[:graph:]");
  refuse("[a&&]", "a class, or a side of &&, without members");
  refuse("[" + std::string(20, '[') + "a", "classes that nest deeper than 16");
  refuse("(?x)a b", "(?x");
  refuse("(?~ab)", "(?~");
  refuse("(*FAIL)", "(*");
  refuse(R"(\Qa)", R"(\Q)");
  refuse(R"(\xe9)", R"(\x without a character)");
  refuse("a**", "two quantifiers in a row");
}

}  // namespace
}  // namespace mindpipe
