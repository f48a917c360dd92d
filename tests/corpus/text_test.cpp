#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "corpus/arithmetic.h"
#include "corpus/files.h"
#include "corpus/import.h"
#include "corpus/inspect.h"
#include "corpus/synthesize.h"
#include "corpus/token_file.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

/// The documents that a file of text is imported as, read back from the pair.
std::vector<std::string> imported(const std::string& text, const std::string& format,
                                  const std::string& key = "text", bool end_of_text = false) {
  const Folder folder;
  write_file(folder / "in", text);
  ImportRequest request{.inputs = {folder / "in"}, .output = folder / "out", .format = format};
  request.rules.key = key;
  request.rules.end_of_text = end_of_text;
  try {
    import_files(request);
  } catch (const Error& error) {
    if (std::string(error.what()).find("the file has no text") == std::string::npos) throw;
    return {};
  }
  const TokenFile file(folder / "out");
  std::vector<std::string> documents;
  for (std::int64_t d = 0; d < file.count(); ++d) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.length(d)));
    file.read(d, 0, file.length(d), tokens.data());
    documents.push_back(end_of_text ? printable(tokens) : ByteTokenizer::text_of(tokens));
  }
  return documents;
}

TEST(TextImport, ATextIsOneDocument) {
  std::string text(200000, 'x');  // several pieces
  text[70000] = '\n';
  EXPECT_THAT(imported(text, "text"), ElementsAre(text));
  EXPECT_THAT(imported("", "text"), ElementsAre());
}

TEST(TextImport, BlankLinesDivideParagraphs) {
  EXPECT_THAT(imported("\n\na\nb\n\n \t\r\nc", "paragraphs"), ElementsAre("a\nb\n", "c"));
}

TEST(TextImport, EachLineOfJsonIsADocument) {
  const std::string lines = R"({"text":"one","n":1})"
                            "\n\n"
                            R"({"n":2,"text":""})"
                            "\n"
                            R"({"text":"tw\u00f6\n"})";
  EXPECT_THAT(imported(lines, "jsonl"), ElementsAre("one", "tw\xc3\xb6\n"));
  EXPECT_THAT(imported(R"({"body":"b"})", "jsonl", "body", true), ElementsAre("b<end>"));
}

TEST(TextImport, NamesTheLineThatIsWrong) {
  const std::string good = R"({"text":"one"})"
                           "\n";
  expect_error(Exit::bad_data, "in: line 2, byte 10: not valid JSON (expected one object a line, in UTF-8)",
               [&] { imported(good + R"({"text": ])", "jsonl"); });
  expect_error(Exit::bad_data, "in: line 3: the line is of type array (expected one JSON object a line)",
               [&] { imported(good + "\n[1]", "jsonl"); });
  expect_error(Exit::bad_data, "in: line 2: there is no key 'text' (the keys are: a, b)",
               [&] { imported(good + R"({"b":1,"a":2})", "jsonl"); });
  expect_error(Exit::bad_data, "in: line 1: 'text' is of type number (expected string)",
               [&] { imported(R"({"text":1})", "jsonl"); });
  expect_error(Exit::bad_data, "in: line 1, byte 10: not valid JSON",
               [&] { imported("{\"text\":\"\xff\"}", "jsonl"); });
  expect_error(Exit::usage, "there is no format 'xml'; choose auto, text, paragraphs, jsonl, pairs or tokens",
               [&] { imported("", "xml"); });
}

TEST(TextImport, RefusesWhatIsNotThere) {
  const Folder folder;
  expect_error(Exit::input_missing, "absent: there is no such file",
               [&] { import_files({.inputs = {folder / "absent"}, .output = folder / "out"}); });
  expect_error(Exit::bad_data, "the folder has no file to import",
               [&] { import_files({.inputs = {folder / ""}, .output = folder / "out"}); });
}

TEST(Inspect, TellsWhatAPairHolds) {
  const Folder folder;
  const std::string pair = write_golden(folder);
  EXPECT_EQ(inspect_file(pair + ".idx", 4),
            pair +
                ".bin: uint16, 9 tokens, 4 sequences, 3 documents\n"
                "tokens in a document: documents\n"
                "           1 - 1            1\n"
                "           2 - 3            1\n"
                "           4 - 7            1\n"
                "tokens 1 to 9 among the first 9\nfirst tokens: 1 2 3 4\nas text: \\x01\\x02\\x03\\x04\n");
  write_file(folder / "a.txt", "twelve bytes");
  EXPECT_EQ(
      inspect_file(folder / "a.txt", 6),
      folder / "a.txt" +
          ": text, 12 bytes: 10 for training, 2 held out for validation\n"
          "tokens 32 to 121 among the first 10\nfirst tokens: 116 119 101 108 118 101\nas text: twelve\n");
  EXPECT_EQ(printable(std::vector<std::int32_t>{'a', '\n', 255, 256, 300}), "a\\n\\xff<end><300>");
}

TEST(SumsInWords, SpellsNumbers) {
  EXPECT_EQ(in_words(0), "zero");
  EXPECT_EQ(in_words(13), "thirteen");
  EXPECT_EQ(in_words(40), "forty");
  EXPECT_EQ(in_words(99), "ninety nine");
  EXPECT_EQ(in_words(100), "one hundred");
  EXPECT_EQ(in_words(198), "one hundred ninety eight");
}

/// Reads the sum back: the number words up to the next other word.
int number(std::istringstream& words, std::string& next) {
  std::vector<std::string> spelled;
  while (words >> next && next != "plus" && next != "minus" && next != "times" && next != "is" &&
         next != "more" && next != "less" && next != "the")
    spelled.push_back(next);
  std::string joined;
  for (const auto& word : spelled) joined += joined.empty() ? word : ' ' + word;
  if (joined.ends_with(".")) joined.pop_back();
  for (int n = 0; n < 200; ++n)
    if (in_words(n) == joined) return n;
  ADD_FAILURE() << "not a number: " << joined;
  return -1;
}

TEST(SumsInWords, EveryLineIsTrue) {
  const SumsInWords arithmetic(7, Subset::train);
  std::array<int, 4> seen{};
  for (int i = 0; i < 400; ++i) {
    std::string line = arithmetic.line(i / 10, i % 10), word, ignored;
    ASSERT_TRUE(line.ends_with(".\n")) << line;
    std::istringstream words(line);
    const int a = number(words, word);
    if (word == "is") {
      words >> word;
      words >> ignored;
      if (word == "the") words >> ignored;
      const int b = number(words, ignored);
      EXPECT_EQ(word, a > b ? "more" : a < b ? "less" : "the") << line;
      ++seen[3];
    } else {
      const int b = number(words, ignored), result = number(words, ignored);
      EXPECT_EQ(result, word == "plus" ? a + b : word == "minus" ? a - b : a * b) << line;
      ++seen[word == "plus" ? 0 : word == "minus" ? 1 : 2];
    }
  }
  for (int kind = 0; kind < 4; ++kind) EXPECT_GT(seen[kind], 60) << kind;
}

TEST(SumsInWords, ASampleIsTheBeginningOfItsDocument) {
  ArithmeticDataset dataset(7, Subset::train, 50, 256), shorter(7, Subset::train, 20, 256),
      other(7, Subset::validation, 50, 256);
  std::vector<std::int32_t> tokens(51), fewer(21), held_out(51);
  const std::int64_t far = (std::int64_t{1} << 40) + 3;
  dataset.text(far, tokens.data());
  shorter.text(far, fewer.data());
  other.text(far, held_out.data());
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), tokens.begin()));
  EXPECT_NE(tokens, held_out);
  const SumsInWords arithmetic(7, Subset::train);
  const std::string text = arithmetic.line(far, 0) + arithmetic.line(far, 1) + arithmetic.line(far, 2);
  EXPECT_EQ(ByteTokenizer::text_of(tokens), text.substr(0, 51));
  EXPECT_NE(arithmetic.line(far, 0), arithmetic.line(3, 0));
}

TEST(SumsInWords, IsWrittenAsTextOrAsTokens) {
  const Folder folder;
  write_arithmetic(folder / "sums.txt", 2, 3, 7);
  write_arithmetic(folder / "sums", 2, 3, 7);
  const SumsInWords arithmetic(7, Subset::train);
  const auto document = [&](int d) {
    return arithmetic.line(d, 0) + arithmetic.line(d, 1) + arithmetic.line(d, 2);
  };
  EXPECT_EQ(read_file(folder / "sums.txt"), document(0) + "\n" + document(1));
  const TokenFile file(folder / "sums", 256);
  ASSERT_EQ(file.count(), 2);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.length(1)));
  file.read(1, 0, file.length(1), tokens.data());
  EXPECT_EQ(ByteTokenizer::text_of(tokens), document(1));
  expect_error(Exit::cannot_create, "sums.txt: the file exists already",
               [&] { write_arithmetic(folder / "sums.txt", 1, 1, 1); });
}

}  // namespace
}  // namespace mindpipe
