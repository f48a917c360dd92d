#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/text.h"
#include "corpus/files.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const std::string folder = MINDPIPE_SOURCE_DIR "/tests/golden/tokenizers/";

const json& golden() {
  static const json whole = json::parse(read_file(folder + "golden.json"));
  return whole;
}

/// Text with U+FFFD for each run of bytes that are no UTF-8 cannot be held against exact bytes.
bool has_replacements(const std::string& text) { return text.find("\ufffd") != std::string::npos; }

class GoldenTokenizers : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTokenizers, GiveTheIdsOfThePeer) {
  const auto tokenizer = load_tokenizer(folder + GetParam());
  const auto encoder = tokenizer->encoder();
  const json& wanted = golden()["cases"][GetParam()];
  // tiktoken's golden ids are those of ordinary text.
  const SpecialText special = GetParam().ends_with(".tiktoken") ? SpecialText::plain : SpecialText::tokens;
  std::size_t compared = 0;
  for (int round = 0; round < 2; ++round)  // the second time from the cache of words
    for (std::size_t i = 0; i < golden()["texts"].size(); ++i) {
      const std::string text = golden()["texts"][i];
      const auto ids = encoder->encode(text, special);
      ASSERT_EQ(ids, wanted["ids"][i].get<std::vector<TokenId>>()) << "text " << i << ": " << text;
      const std::string decoded = wanted["decoded"][i];
      if (!has_replacements(decoded)) {
        ASSERT_EQ(tokenizer->decode(ids), decoded) << "text " << i << ": " << text;
      }
      compared += ids.size();
    }
  EXPECT_GT(compared, 4000U);
  if (!wanted.contains("pair")) return;
  const auto first = encoder->encode(golden()["texts"][40].get<std::string>()),
             second = encoder->encode(golden()["texts"][41].get<std::string>());
  EXPECT_EQ(tokenizer->with_template(first).ids, wanted["template"].get<std::vector<TokenId>>());
  EXPECT_EQ(tokenizer->with_template(first, second).ids, wanted["pair"].get<std::vector<TokenId>>());
  EXPECT_EQ(tokenizer->with_template(first, second).types, wanted["types"].get<std::vector<std::int32_t>>());
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokenizers,
                         testing::Values("gpt2.json", "gpt4.json", "llama3.json", "qwen2.json", "llama2.json",
                                         "metaspace.json", "bert.json", "words.json", "flags.json",
                                         "cl100k.tiktoken", "gpt2.tiktoken", "o200k.tiktoken",
                                         "llama3.tiktoken", "unigram.model", "pairs.model"));

/// Random bytes, truncated and overlong UTF-8, surrogates and NUL.
std::string hostile_bytes(std::size_t count) {
  std::mt19937 draw(3);
  std::string bytes;
  const std::vector<std::string> parts{
      std::string(1, '\0'), "\xc0\xaf", "\xe2\x82",     "\xed\xa0\x80", "\xf4\x90\x80\x80", "\u00e9", " the",
      "\U0001f600",         "\n\n  ",   "<|endoftext|>"};
  while (bytes.size() < count) {
    if (draw() % 2 == 0) bytes += static_cast<char>(draw() % 256);
    else bytes += parts[draw() % parts.size()];
  }
  return bytes;
}

TEST(ByteLevelTokenizers, GiveEveryInputBackExactly) {
  constexpr std::size_t megabyte = 1'000'000;
  for (const auto& [name, size] :
       {std::pair{folder + "gpt2.json", 10 * megabyte}, std::pair{folder + "gpt4.json", 2 * megabyte},
        std::pair{folder + "llama3.json", megabyte}, std::pair{folder + "cl100k.tiktoken", megabyte},
        std::pair{std::string("bytes"), 10 * megabyte}}) {
    const auto tokenizer = load_tokenizer(name);
    const std::string bytes = hostile_bytes(size);
    const auto ids = tokenizer->encoder()->encode(bytes);
    EXPECT_TRUE(tokenizer->decode(ids, true) == bytes) << name;
    const auto plain = tokenizer->encoder()->encode(bytes, SpecialText::plain);
    EXPECT_TRUE(tokenizer->decode(plain, false) == bytes) << name;
  }
}

TEST(ByteLevelTokenizers, AreSharedByThreadsWithEncodersOfTheirOwn) {
  const auto tokenizer = load_tokenizer(folder + "gpt4.json");
  const std::string bytes = hostile_bytes(50'000);
  const auto alone = tokenizer->encoder()->encode(bytes);
  std::vector<std::vector<TokenId>> found(4);
  std::vector<std::thread> threads;
  for (auto& ids : found) threads.emplace_back([&] { ids = tokenizer->encoder()->encode(bytes); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& ids : found) EXPECT_EQ(ids, alone);
}

TEST(ByteLevelTokenizers, StreamWholeCharacters) {
  const auto tokenizer = load_tokenizer(folder + "gpt2.json");
  StreamDecoder decoder(*tokenizer);
  std::string whole;
  const std::string text = "a \u4f60\u597d \U0001f600\n b";
  for (const TokenId id : tokenizer->encoder()->encode(text)) {
    const std::string part = decoder.add(id);
    EXPECT_TRUE(is_utf8(part));
    whole += part;
  }
  EXPECT_EQ(whole + decoder.finish(), text);
}

TEST(Tokenizers, NameTheirSpecialTokensAndCopies) {
  const auto bert = load_tokenizer(folder + "bert.json");
  EXPECT_EQ(bert->special().mask, 4);
  EXPECT_EQ(bert->special().padding, 0);
  const Folder copy;
  for (const auto& file : bert->files()) std::filesystem::copy_file(file.path, copy / file.name);
  const auto again = load_tokenizer(std::filesystem::path(copy / "x").parent_path().string());
  EXPECT_EQ(again->digest(), bert->digest());
  EXPECT_EQ(again->vocabulary(), bert->vocabulary());
}

TEST(Tokenizers, ReadVocabularyAndMergesAsGpt2HasThem) {
  const Folder copy;
  const json whole = json::parse(read_file(folder + "gpt2.json"));
  std::string merges = "#version: 0.2\n";
  for (const json& pair : whole["model"]["merges"])
    merges += pair[0].get<std::string>() + " " + pair[1].get<std::string>() + "\n";
  write_file(copy / "vocab.json", whole["model"]["vocab"].dump());
  write_file(copy / "merges.txt", merges);
  const auto tokenizer = load_tokenizer(copy / "vocab.json");
  const json& wanted = golden()["cases"]["gpt2.json"];
  for (std::size_t i = 0; i < golden()["texts"].size(); ++i)
    ASSERT_EQ(tokenizer->encoder()->encode(golden()["texts"][i].get<std::string>()),
              wanted["ids"][i].get<std::vector<TokenId>>());
  EXPECT_EQ(tokenizer->special().end, tokenizer->id_of("<|endoftext|>"));
  write_file(copy / "merges.txt", merges + "q qqq\n");
  expect_error(Exit::bad_data, "joins 'q' and 'qqq', and 'qqq' is no token",
               [&] { load_tokenizer(copy / "vocab.json"); });
}

TEST(Tokenizers, ReadBertsLines) {
  const Folder copy;
  write_file(copy / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n##s\nwor\n##ld\n,\n");
  const auto tokenizer = load_tokenizer(copy / "vocab.txt");
  EXPECT_THAT(tokenizer->encoder()->encode("Hellos,  World [MASK] zz"), ElementsAre(5, 6, 9, 7, 8, 4, 1));
  EXPECT_THAT(tokenizer->with_template(std::vector<TokenId>{5}).ids, ElementsAre(2, 5, 3));
  write_file(copy / "vocab.txt", "[CLS]\n[SEP]\na\na\n");
  expect_error(Exit::bad_data, "two tokens have the text 'a', 2 and 3",
               [&] { load_tokenizer(copy / "vocab.txt"); });
}

TEST(Tokenizers, RefuseByName) {
  const Folder made;
  const auto refuse = [&](const std::string& text, const std::string& part) {
    write_file(made / "tokenizer.json", text);
    expect_error(Exit::bad_data, part, [&] { load_tokenizer(made / "tokenizer.json"); });
  };
  refuse(R"({"model": {"type": "Unigram", "vocab": []}})", "use the .model file");
  refuse(R"({"model": {"type": "WordLevel", "vocab": {}}})", "the model WordLevel is not built");
  refuse(R"({"normalizer": {"type": "Nmt"}, "model": {"type": "BPE", "vocab": {}, "merges": []}})",
         "the normalizer Nmt is not built");
  refuse(
      R"({"pre_tokenizer": {"type": "UnicodeScripts"}, "model": {"type": "BPE", "vocab": {}, "merges": []}})",
      "the pre-tokenizer UnicodeScripts is not built");
  const std::string pairs = R"("model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  refuse(R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled"}]}, )" + pairs,
         "the normalizer Precompiled is not built");
  refuse(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Delimiter"}]}, )" + pairs,
         "the pre-tokenizer Delimiter is not built");
  refuse(R"({"post_processor": {"type": "Around"}, )" + pairs, "the post-processor Around is not built");
  refuse(R"({"decoder": {"type": "CTC"}, )" + pairs, "the decoder CTC is not built");
  refuse(R"({"model": {"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": []}})",
         "dropout is 0.1, which is not built");
  refuse(R"({"added_tokens": [{"id": 1, "content": "<x>"}, {"id": 2, "content": "<x>"}], )" + pairs,
         "two tokens have the text '<x>', 1 and 2");
  refuse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}})", "the key 'a' twice");
  refuse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}})", "the id 0 has two tokens");
  refuse(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})", "'b' is no token");
  refuse("{", "is not JSON at byte");
  refuse(std::string(200, '['), "is nested deeper than");
  write_file(made / "x.tiktoken", "YQ== 0\n");
  expect_error(Exit::bad_configuration, "which pattern splits text is not said",
               [&] { load_tokenizer(made / "x.tiktoken"); });
  write_file(made / "twice.tiktoken", "YQ== 0\nYQ== 1\n");
  expect_error(Exit::bad_data, "two tokens have the text 'a', 0 and 1",
               [&] { load_tokenizer((made / "twice.tiktoken") + ":gpt2"); });
  expect_error(Exit::bad_data, "there is no rank of the byte 0",
               [&] { load_tokenizer((made / "x.tiktoken") + ":gpt2"); });
}

TEST(Tokenizers, FindSpecialTokensBeforeThoseOfNormalizedText) {
  const Folder made;
  json whole = {
      {"model", {{"type", "WordPiece"}, {"unk_token", "?"}, {"vocab", {{"?", 0}, {"ab", 1}, {"<x", 2}}}}}};
  const auto added = [](TokenId id, const std::string& text, bool special, bool word = false) {
    return json{
        {"id", id}, {"content", text}, {"special", special}, {"normalized", !special}, {"single_word", word}};
  };
  whole["added_tokens"] = {added(3, "<x>", false), added(4, ">z", true),   added(5, "word", false, true),
                           added(6, "yes", true),  added(7, "abc", false), added(8, "cde", true)};
  for (const json& normalizer : {json(), json{{"type", "NFC"}}}) {
    whole["normalizer"] = normalizer;
    write_file(made / "tokenizer.json", whole.dump());
    const auto tokenizer = load_tokenizer(made / "tokenizer.json");
    const auto encoder = tokenizer->encoder();
    EXPECT_THAT(encoder->encode("<x>z"), ElementsAre(2, 4));
    EXPECT_THAT(encoder->encode("yesword"), ElementsAre(6, 5));
    EXPECT_THAT(encoder->encode("abcde"), ElementsAre(1, 8));
    EXPECT_THAT(encoder->encode("abc"), ElementsAre(7));
  }
}

TEST(Tokenizers, PutTheSignOnlyBeforeTheFirstCharacterOfADocument) {
  const Folder made;
  json whole = {{"pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "first"}}},
                {"model", {{"type", "WordPiece"}, {"unk_token", "?"}, {"vocab", json::object()}}}};
  const std::vector<std::string> words{"?", "hi", "\u2581hi", "xhi", "\u2581xhi"};
  for (std::size_t id = 0; id < words.size(); ++id) whole["model"]["vocab"][words[id]] = id;
  const auto id_of = [&](const json& normalizer, const std::string& text) {
    whole["normalizer"] = normalizer;
    write_file(made / "tokenizer.json", whole.dump());
    return words[static_cast<std::size_t>(
        load_tokenizer(made / "tokenizer.json")->encoder()->encode(text).at(0))];
  };
  const auto replace = [](const std::string& pattern, const std::string& content) {
    return json{{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", content}};
  };
  const auto after_strip = [](const json& next) {
    return json{{"type", "Sequence"}, {"normalizers", {{{"type", "Strip"}}, next}}};
  };
  EXPECT_EQ(id_of({{"type", "Strip"}}, "hi "), "\u2581hi");
  EXPECT_EQ(id_of({{"type", "Strip"}}, " hi"), "hi");
  EXPECT_EQ(id_of({{"type", "BertNormalizer"}}, "\ufeffhi"), "hi");
  EXPECT_EQ(id_of({{"type", "BertNormalizer"}}, std::string(1, '\0') + "hi"), "hi");
  EXPECT_EQ(id_of({{"type", "StripAccents"}}, "\u0301hi"), "hi");
  EXPECT_EQ(id_of(replace("^ +", ""), " hi"), "hi");
  EXPECT_EQ(id_of(replace("^ +", "x"), " hi"), "\u2581xhi");
  EXPECT_EQ(id_of(replace("^ +", "x"), "  hi"), "xhi");
  EXPECT_EQ(id_of(after_strip({{"type", "Prepend"}, {"prepend", "x"}}), " hi"), "xhi");
  EXPECT_EQ(id_of(after_strip(replace("^", "x")), " hi"), "\u2581xhi");
  EXPECT_TRUE(load_tokenizer(made / "tokenizer.json")->encoder()->encode(" ").empty());
}

TEST(Tokenizers, RefuseTemplatesThatNameNoTokenOrATextTwice) {
  const Folder made;
  const auto refuse = [&](const json& around, const std::string& part) {
    const json model{{"type", "BPE"}, {"vocab", {{"a", 0}}}, {"merges", json::array()}};
    write_file(made / "tokenizer.json", json{{"post_processor", around}, {"model", model}}.dump());
    expect_error(Exit::bad_data, (made / "tokenizer.json") + ": " + part,
                 [&] { load_tokenizer(made / "tokenizer.json"); });
  };
  const std::string beyond = "the post-processor has the id 7777, and the vocabulary ends at 0";
  for (const char* type : {"BertProcessing", "RobertaProcessing"})
    refuse({{"type", type}, {"cls", {"a", 0}}, {"sep", {"b", 7777}}}, beyond);
  const json text{{"Sequence", {{"id", "A"}}}}, token{{"SpecialToken", {{"id", "b"}}}};
  json around{{"type", "TemplateProcessing"}, {"special_tokens", {{"b", {{"ids", {7777}}}}}}};
  around["single"] = {token, text};
  around["pair"] = {text};
  refuse(around, beyond);
  around["single"] = {text, text};
  refuse(around, "the template 'single' has the sequence A 2 times");
  around["single"] = json::array();
  refuse(around, "the template 'single' has the sequence A 0 times");
}

TEST(Tokenizers, NameTheFileOfRanksThatStandTwice) {
  const Folder made;
  const std::string path = made / "twice.tiktoken";
  write_file(path, "YQ== 0\nYg== 0\n");
  expect_error(Exit::bad_data, path + ": the id 0 has two tokens, 'a' and 'b'",
               [&] { load_tokenizer(path + ":gpt2"); });
  write_file(path, "YQ== 0\nYQ== 1\n");
  expect_error(Exit::bad_data, path + ": two tokens have the text 'a', 0 and 1",
               [&] { load_tokenizer(path + ":gpt2"); });
}

TEST(Tokenizers, LimitPatternsThatTryOnePlaceInManyWays) {
  const Folder made;
  write_file(
      made / "tokenizer.json",
      R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$b|(a|a)+c"}, "behavior": "Isolated"},
                 "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const auto tokenizer = load_tokenizer(made / "tokenizer.json");
  expect_error(Exit::bad_data, "simplify it", [&] { tokenizer->encoder()->encode(std::string(60, 'a')); });
}

TEST(Tokenizers, TakeMegabytesOfOneLetterAndOfSpaces) {
  const auto tokenizer = load_tokenizer(folder + "gpt4.json");
  for (const char letter : {'a', ' '}) {
    const std::string text(1 << 20, letter);
    EXPECT_TRUE(tokenizer->decode(tokenizer->encoder()->encode(text)) == text);
  }
}

}  // namespace
}  // namespace mindpipe
