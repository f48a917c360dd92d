#include "corpus/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "corpus/corpus.h"
#include "corpus/files.h"
#include "corpus/token_writer.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
constexpr std::int32_t end = ByteTokenizer::end_of_text, start = 257, pad = 258;

std::vector<Field> pair_fields(int source, int target, int vocabulary = 260) {
  return {{field::source, DType::i32, {source}, vocabulary},
          {field::source_lengths, DType::i32, {1}},
          {field::tokens, DType::i32, {target}, vocabulary},
          {field::targets, DType::i32, {target}, vocabulary}};
}
struct PairSample {
  std::vector<std::int32_t> source, tokens, targets;
  std::int32_t length = -7;
};
PairSample pair_at(Corpus& corpus, std::int64_t index, int source, int target) {
  PairSample s{std::vector<std::int32_t>(source, -7), std::vector<std::int32_t>(target, -7),
               std::vector<std::int32_t>(target, -7)};
  FieldTensors to;
  to.set(field::source, {s.source.data(), {1, source}, DType::i32});
  to.set(field::source_lengths, {&s.length, {1, 1}, DType::i32});
  to.set(field::tokens, {s.tokens.data(), {1, target}, DType::i32});
  to.set(field::targets, {s.targets.data(), {1, target}, DType::i32});
  corpus.batch(index, to);
  return s;
}
Corpus open_pairs(const std::string& path, int source, int target, Subset subset = Subset::validation) {
  return Corpus(from(path), subset, pair_fields(source, target), 1);
}

TEST(Pairs, OfATabbedTextArePaddedOnTheRightAndTargetsComeOneBehind) {
  const Folder folder;
  write_file(folder / "pairs.tsv", "x\ty\nab\tcde");  // the last line is held out
  Corpus corpus = open_pairs(folder / "pairs.tsv", 5, 6);
  const PairSample s = pair_at(corpus, 0, 5, 6);
  EXPECT_THAT(s.source, ElementsAre('a', 'b', end, pad, pad));
  EXPECT_EQ(s.length, 3);
  EXPECT_THAT(s.tokens, ElementsAre(start, 'c', 'd', 'e', pad, pad));
  EXPECT_THAT(s.targets, ElementsAre('c', 'd', 'e', end, -1, -1));
}

TEST(Pairs, EndTheirLinesInOneByteOrTwo) {
  const Folder folder;
  write_file(folder / "pairs.tsv", "x\ty\r\n\r\nab\tcd\r\n");
  Corpus corpus = open_pairs(folder / "pairs.tsv", 3, 3);
  const PairSample s = pair_at(corpus, 0, 3, 3);
  EXPECT_THAT(s.source, ElementsAre('a', 'b', end));
  EXPECT_THAT(s.targets, ElementsAre('c', 'd', end));
}

TEST(Pairs, ThatAreTooLongAreCut) {
  const Folder folder;
  write_file(folder / "pairs.tsv", "x\ty\nabcd\tefgh\n");
  Corpus corpus = open_pairs(folder / "pairs.tsv", 3, 2);
  const PairSample s = pair_at(corpus, 0, 3, 2);
  EXPECT_THAT(s.source, ElementsAre('a', 'b', 'c'));
  EXPECT_EQ(s.length, 3);
  EXPECT_THAT(s.tokens, ElementsAre(start, 'e'));
  EXPECT_THAT(s.targets, ElementsAre('e', 'f'));
}

TEST(Pairs, OfEmptyTextsHaveTheirEndAlone) {
  const Folder folder;
  write_file(folder / "pairs.tsv", "x\ty\n\t\n");
  Corpus corpus = open_pairs(folder / "pairs.tsv", 2, 2);
  const PairSample s = pair_at(corpus, 0, 2, 2);
  EXPECT_THAT(s.source, ElementsAre(end, pad));
  EXPECT_THAT(s.tokens, ElementsAre(start, pad));
  EXPECT_THAT(s.targets, ElementsAre(end, -1));
}

TEST(Pairs, OfTwoTokenFilesAreDocumentsOfTheSameNumber) {
  const Folder folder;
  for (const auto& [name, first] : {std::pair{"sources", 10}, {"targets", 20}}) {
    TokenWriter writer(folder / name, TokenType::u16);
    for (std::int32_t d = 0; d < 2; ++d) {
      writer.add({{first + d}});
      writer.end_document();
    }
    writer.finish();
  }
  const std::string both = "pairs:" + (folder / "sources") + ":" + (folder / "targets");
  Corpus corpus = open_pairs(both, 2, 2);
  const PairSample s = pair_at(corpus, 1, 2, 2);
  EXPECT_THAT(s.source, ElementsAre(11, end));
  EXPECT_THAT(s.targets, ElementsAre(21, end));
  write_golden(folder);  // three documents
  expect_error(Exit::bad_data, "2 documents and " + (folder / "pair.bin") + " 3",
               [&] { open_pairs("pairs:" + (folder / "sources") + ":" + (folder / "pair"), 2, 2); });
  for (const std::string both : {"pairs:a.txt:b", "pairs:a:b.tsv"})
    expect_error(Exit::bad_configuration, "names a text, which is one document",
                 [&] { open_pairs(both, 2, 2); });
  expect_error(Exit::bad_configuration, "write pairs:SOURCES:TARGETS",
               [&] { open_pairs("pairs:" + (folder / "sources"), 2, 2); });
}

TEST(Pairs, AreShuffledInTrainingEveryRoundAnewAndNoneIsLost) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::string(1, static_cast<char>('0' + i)) + "\tx\n";
  write_file(folder / "pairs.tsv", text);
  Corpus corpus = open_pairs(folder / "pairs.tsv", 2, 2, Subset::train);
  std::vector<std::int32_t> rounds[2];
  for (int i = 0; i < 72; ++i) rounds[i / 36].push_back(pair_at(corpus, i, 2, 2).source[0]);
  EXPECT_NE(rounds[0], rounds[1]);
  for (const auto& round : rounds) EXPECT_EQ(std::set<std::int32_t>(round.begin(), round.end()).size(), 36u);
  EXPECT_EQ(pair_at(corpus, 3, 2, 2).source[0], rounds[0][3]) << "a sample is a function of its number";
}

TEST(Pairs, SayWhatIsWrong) {
  const Folder folder;
  write_file(folder / "bad.tsv", "a\tb\nno tab\n");
  expect_error(Exit::bad_data, "bad.tsv:2: there is no tab", [&] { open_pairs(folder / "bad.tsv", 2, 2); });
  write_file(folder / "one.tsv", "a\tb\n");
  expect_error(Exit::bad_data, "1 pairs", [&] { open_pairs(folder / "one.tsv", 2, 2); });
  expect_error(Exit::bad_configuration, "model.vocabulary is 258; set it to 259 or more",
               [] { Corpus(from("synthetic:dates"), Subset::train, pair_fields(2, 2, 258), 1); });
  const auto open_with_few = [](const std::string& path, std::int32_t vocabulary) {
    DataConfig data = from(path);
    data.special = {.end = 0, .start = 1, .padding = 2, .mask = 3};
    Corpus(data, Subset::train, pair_fields(2, 2, vocabulary), 1);
  };
  write_file(folder / "few.tsv", "a\tz\nc\td\n");
  open_with_few(folder / "few.tsv", 'z' + 1);
  expect_error(Exit::bad_configuration,
               "few.tsv has the byte 122, which is a token, and model.vocabulary is 122",
               [&] { open_with_few(folder / "few.tsv", 'z'); });
  expect_error(Exit::bad_configuration, "synthetic:dates has the byte 121",
               [&] { open_with_few("synthetic:dates", 'y'); });
  expect_error(Exit::bad_configuration, "synthetic:shapes holds pictures, and the model reads pairs of texts",
               [] { open_pairs("reversed:synthetic:shapes", 2, 2); });
  expect_error(Exit::bad_configuration, "holds pairs of texts, and the model reads texts; name", [] {
    Corpus(from("synthetic:dates"), Subset::train,
           {{field::tokens, DType::i32, {4}, 260}, {field::targets, DType::i32, {4}, 260}}, 1);
  });
}

TEST(Dates, AreWrittenInADozenForms) {
  const auto written = [](int form) { return Dates::written(form, 2024, 3, 5); };
  std::set<std::string> all;
  for (int form = 0; form < Dates::forms; ++form) all.insert(written(form));
  EXPECT_EQ(all, (std::set<std::string>{"5 March 2024", "March 5, 2024", "3/5/2024", "5.3.2024", "05.03.24",
                                        "5 Mar 2024", "Mar 05 '24", "20240305", "the 5th of March 2024",
                                        "March 5th, 2024", "2024/03/05", "05-Mar-2024"}));
  EXPECT_EQ(Dates::written(8, 1999, 1, 1), "the 1st of January 1999");
  EXPECT_EQ(Dates::written(8, 1999, 1, 11), "the 11th of January 1999");
  EXPECT_EQ(Dates::written(9, 1999, 1, 22), "January 22nd, 1999");
}

TEST(Dates, OfSourceAndTargetAreTheSameDay) {
  const Dates dates(1, Subset::train);
  std::set<std::string> seen;
  int leap_days = 0;
  for (std::int64_t i = 0; i < 3000; ++i) {
    const TextPair pair = dates.pair(i);
    const std::string iso = ByteTokenizer::text_of(pair.target), source = ByteTokenizer::text_of(pair.source);
    const int year = std::stoi(iso.substr(0, 4)), month = std::stoi(iso.substr(5, 2)),
              day = std::stoi(iso.substr(8));
    bool found = false;
    for (int form = 0; form < Dates::forms; ++form) found |= Dates::written(form, year, month, day) == source;
    EXPECT_TRUE(found) << source << " " << iso;
    leap_days += month == 2 && day == 29 ? 1 : 0;
    seen.insert(iso);
  }
  EXPECT_GT(seen.size(), 2500u);
  EXPECT_GT(leap_days, 0);
  EXPECT_NE(Dates(1, Subset::validation).pair(0).source, dates.pair(0).source);
}

}  // namespace
}  // namespace mindpipe
