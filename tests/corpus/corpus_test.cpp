#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpus/corpus.h"
#include "corpus/files.h"
#include "corpus/token_writer.h"
#include "tokenize/byte_tokenizer.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
const std::string alice = std::string(MINDPIPE_SOURCE_DIR) + "/data/alice.txt";

/// What a model of texts reads.
std::vector<Field> texts(int sequence = 4, int vocabulary = 256) {
  return {{field::tokens, DType::i32, {sequence}, vocabulary},
          {field::targets, DType::i32, {sequence}, vocabulary}};
}
struct Batch {
  std::vector<std::int32_t> tokens, targets;
  bool operator==(const Batch&) const = default;
};
Batch batch(Corpus& corpus, std::int64_t first, std::int64_t samples, std::int64_t sequence = 4) {
  const auto n = static_cast<std::size_t>(samples * sequence);
  Batch out{std::vector<std::int32_t>(n), std::vector<std::int32_t>(n)};
  FieldTensors to;
  to.set(field::tokens, {out.tokens.data(), {samples, sequence}, DType::i32});
  to.set(field::targets, {out.targets.data(), {samples, sequence}, DType::i32});
  corpus.batch(first, to);
  return out;
}
/// A pair of one document with tokens first, first + 1 ...
std::string write_counting(const Folder& folder, const std::string& name, std::int32_t first,
                           std::int32_t tokens) {
  TokenWriter writer(folder / name, TokenType::u16);
  for (std::int32_t t = 0; t < tokens; ++t) writer.add({{first + t}});
  writer.end_document();
  writer.finish();
  return folder / name;
}

TEST(Corpus, TheTargetIsTheTokenThatComesNext) {
  const Folder folder;
  Corpus corpus({{}, {{write_golden(folder), 1}}}, Subset::validation, texts(), 1);
  const Batch out = batch(corpus, 0, 3);  // two samples to a round; the third is the first again
  EXPECT_THAT(out.tokens, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4));
  EXPECT_THAT(out.targets, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5));
}

TEST(Corpus, APartOfABatchIsThatPartOfTheBatch) {
  const Folder folder;
  const DataConfig data{
      {{alice, 3}, {"synthetic:arithmetic", 1}, {write_counting(folder, "count", 0, 100), 0.5}},
      {{alice, 1}}};
  for (const Subset subset : {Subset::train, Subset::validation}) {
    Corpus one(data, subset, texts(7), 5), other(data, subset, texts(7), 5);
    for (const std::int64_t first : {0, 4090, 100000}) {
      Batch whole = batch(one, first, 8, 7), head = batch(other, first, 3, 7);
      const Batch tail = batch(other, first + 3, 5, 7);
      head.tokens.insert(head.tokens.end(), tail.tokens.begin(), tail.tokens.end());
      head.targets.insert(head.targets.end(), tail.targets.begin(), tail.targets.end());
      EXPECT_EQ(whole, head) << first;
    }
  }
}

TEST(Corpus, TheSeedOrdersTrainingAndNotValidation) {
  const DataConfig data{{{alice, 1}}, {{alice, 1}}};
  const auto first = [&](Subset subset, std::uint64_t seed) {
    Corpus corpus(data, subset, texts(16), seed);
    return batch(corpus, 0, 8, 16).tokens;
  };
  EXPECT_NE(first(Subset::train, 1), first(Subset::train, 2));
  EXPECT_EQ(first(Subset::train, 1), first(Subset::train, 1));
  EXPECT_NE(first(Subset::train, 1), first(Subset::train, (std::uint64_t{1} << 32) + 1));
  EXPECT_EQ(first(Subset::validation, 1), first(Subset::validation, 2));
}

TEST(Corpus, ATextHoldsItsLastTenthOut) {
  const Folder folder;
  std::string text;
  for (int line = 0; line < 100; ++line) text += fmt::format("line {:02}\n", line);
  write_file(folder / "lines.txt", text);
  const DataConfig data{{{folder / "lines.txt", 1}}, {{folder / "lines.txt", 1}}};
  Corpus train(data, Subset::train, texts(8), 1), validation(data, Subset::validation, texts(8), 1);
  EXPECT_EQ(ByteTokenizer::text_of(batch(validation, 0, 1, 8).tokens), "line 91\n");
  const std::string seen = ByteTokenizer::text_of(batch(train, 0, 90, 8).tokens);  // one round
  for (int line = 0; line < 90; ++line) EXPECT_THAT(seen, HasSubstr(fmt::format("line {:02}", line)));
  EXPECT_THAT(seen, testing::Not(HasSubstr("line 91")));
  EXPECT_THAT(train.describe().at(0), HasSubstr("lines.txt (the first 90 % of the text): 728 tokens in 1 "
                                                "documents, 90 samples an epoch, shuffled"));
  EXPECT_THAT(
      validation.describe().at(0),
      HasSubstr(
          "lines.txt (the last 10 % of the text): 72 tokens in 1 documents, 8 samples an epoch, in order"));
}

TEST(Corpus, SourcesAreBlendedByWeight) {
  const Folder folder;
  const DataConfig data{
      {{write_counting(folder, "low", 0, 100), 2}, {write_counting(folder, "high", 100, 100) + ".bin", 1}},
      {}};
  Corpus corpus(data, Subset::train, texts(), 3);
  const Batch out = batch(corpus, 0, 30);
  int high = 0;
  for (std::size_t s = 0; s < 30; ++s) high += out.tokens[4 * s] >= 100;
  EXPECT_EQ(high, 10);
}

/// Samples of pairs: what a model with a source reads.
std::vector<Field> pairs(int source, int target) {
  std::vector<Field> fields = texts(target);
  fields.push_back({field::source, DType::i32, {source}, 256});
  fields.push_back({field::source_lengths, DType::i32, {1}});
  return fields;
}

TEST(Corpus, AReversedTextIsTheSourceOfItself) {
  const Folder folder;
  const DataConfig data{{}, {{"reversed:" + write_golden(folder), 1}}};
  for (const int source : {3, 4, 6}) {
    Corpus corpus(data, Subset::validation, pairs(source, 4), 1);
    std::vector<std::int32_t> tokens(8), backwards(2 * source), lengths(2);
    FieldTensors to;
    to.set(field::tokens, {tokens.data(), {2, 4}, DType::i32});
    to.set(field::source, {backwards.data(), {2, source}, DType::i32});
    to.set(field::source_lengths, {lengths.data(), {2, 1}, DType::i32});
    corpus.batch(0, to);
    EXPECT_THAT(tokens, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)) << "what is not asked for is left out";
    std::vector<std::int32_t> expected{4, 3, 2, 1, 0, 0};
    expected.resize(source);
    EXPECT_EQ(std::vector(backwards.begin(), backwards.begin() + source), expected);
    EXPECT_THAT(lengths, ElementsAre(std::min(source, 4), 3)) << "each has a length of its own";
    EXPECT_THAT(corpus.describe().at(0), HasSubstr("each from itself backwards"));
  }
}

TEST(Corpus, ASourceWithoutAFieldThatTheModelReadsIsRefused) {
  const DataConfig data{{{alice, 1}}, {}};
  expect_error(Exit::bad_configuration,
               "data.train[0]: " + alice +
                   " holds texts, and the model reads pairs of texts: samples have tokens, targets and no "
                   "source; name a source of its own kind, or reversed:" +
                   alice,
               [&] { Corpus(data, Subset::train, pairs(4, 4), 1); });
  const DataConfig turned{{{"reversed:" + alice, 1}}, {}};
  expect_error(Exit::bad_configuration, "holds pairs of texts, and the model reads texts; name",
               [&] { Corpus(turned, Subset::train, texts(), 1); });
}

TEST(Corpus, RefusesWhatCannotBeTrainedOn) {
  const Folder folder;
  const auto with = [](const std::string& path, double weight = 1) {
    return DataConfig{{{path, weight}}, {}};
  };
  const auto open = [](const DataConfig& data, const std::vector<Field>& fields = texts()) {
    return [=] { Corpus(data, Subset::train, fields, 1); };
  };
  write_file(folder / "empty.txt", "");
  write_file(folder / "short.txt", "ab\n");
  expect_error(Exit::bad_configuration, "data.train names no source", open({}));
  expect_error(Exit::bad_configuration, "the weight of x is 0 (must be above 0)", open(with("x", 0)));
  expect_error(Exit::bad_configuration, "synthetic:poems is nothing that the program can make",
               open(with("synthetic:poems")));
  expect_error(Exit::bad_configuration,
               "model.vocabulary is 100 (synthetic:arithmetic is written in bytes up to 122)",
               open(with("synthetic:arithmetic"), texts(4, 100)));
  expect_error(Exit::bad_data, "empty.txt: the file is empty", open(with(folder / "empty.txt")));
  expect_error(Exit::bad_data,
               "short.txt (the first 90 % of the text): the file has 2 tokens (a sample takes 5",
               open(with(folder / "short.txt")));
  expect_error(Exit::input_missing, "absent.txt: there is no such file", open(with(folder / "absent.txt")));
  expect_error(Exit::input_missing,
               "absent.idx: there is no such file; check the path (a text is named with its ending .txt, a "
               "pair of token files without .bin and .idx)",
               open(with(folder / "absent")));
  write_file(folder / "story.md", "once upon a time");
  expect_error(Exit::bad_data, "story.md is neither a text (*.txt) nor a pair of token files (",
               open(with(folder / "story.md")));
  expect_error(Exit::bad_data, "pair.bin: the file has 9 tokens (a sample takes 10",
               open(with(write_golden(folder)), texts(9)));
  TokenWriter(folder / "none", TokenType::u16).finish();
  expect_error(Exit::bad_data, "none.bin: the file has no tokens", open(with(folder / "none")));
  Corpus narrow(with(alice), Subset::train, texts(4, 50), 1);
  expect_error(Exit::bad_data, "alice.txt: document 0, position ", [&] { batch(narrow, 0, 1); });
}

TEST(CorpusOnce, GivesEverySampleOfEverySourceOnceAndBehindThemNoTargetThatCounts) {
  const Folder folder;
  // Two samples, one, and three; weights change nothing. Tokens that fill no sample are left out.
  const DataConfig data{{},
                        {{write_counting(folder, "a", 0, 11), 1},
                         {write_counting(folder, "b", 100, 5), 70},
                         {write_counting(folder, "c", 200, 13), 0.25}}};
  Corpus corpus = Corpus::once(data, Subset::validation, texts(), 3);
  EXPECT_EQ(corpus.samples(), 6);
  const Batch all = batch(corpus, 0, 8);
  std::vector<std::int32_t> counted;
  for (std::size_t i = 0; i < all.targets.size(); ++i) {
    if (all.targets[i] < 0) continue;
    EXPECT_EQ(all.targets[i], all.tokens[i] + 1);
    counted.push_back(all.tokens[i]);
  }
  EXPECT_THAT(counted, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 200, 201, 202, 203, 204, 205,
                                   206, 207, 208, 209, 210, 211));
  for (std::size_t i = 24; i < 32; ++i) {
    EXPECT_EQ(all.targets[i], -1);
    EXPECT_TRUE(all.tokens[i] >= 0 && all.tokens[i] < 256) << "a model reads it all the same";
  }
  for (std::int64_t first : {0, 2, 5, 6}) {
    const Batch part = batch(corpus, first, 2);
    EXPECT_TRUE(std::equal(part.targets.begin(), part.targets.end(), all.targets.begin() + 4 * first));
  }
}

TEST(CorpusOnce, RefusesASourceWithoutAnEnd) {
  const Folder folder;
  expect_error(Exit::bad_configuration,
               "data.validation: synthetic:arithmetic has no end, so an evaluation cannot go over all of it; "
               "set train.evaluate_batches to a number of batches",
               [&] {
                 Corpus::once({{}, {{write_golden(folder), 1}, {"synthetic:arithmetic", 1}}},
                              Subset::validation, texts(), 3);
               });
  const std::vector<Field> pictures{{field::picture, DType::u8, {32, 32}},
                                    {field::targets, DType::i32, {1}, 6}};
  expect_error(Exit::bad_configuration, "synthetic:shapes has no end",
               [&] { Corpus::once(from("synthetic:shapes"), Subset::validation, pictures, 3); });
  const std::vector<Field> pairs{{field::source, DType::i32, {16}, 260},
                                 {field::source_lengths, DType::i32, {1}},
                                 {field::tokens, DType::i32, {12}, 260},
                                 {field::targets, DType::i32, {12}, 260}};
  expect_error(Exit::bad_configuration, "synthetic:dates has no end",
               [&] { Corpus::once(from("synthetic:dates"), Subset::validation, pairs, 3); });
  EXPECT_EQ(Corpus(from("synthetic:dates"), Subset::validation, pairs, 3).samples(), 0);
}

TEST(CorpusOnce, CountsThePairsOfATextAndTheMaskedTexts) {
  const Folder folder;
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "a\tb\n";
  write_file(folder / "pairs.tsv", lines);
  const std::vector<Field> pairs{{field::source, DType::i32, {16}, 260},
                                 {field::source_lengths, DType::i32, {1}},
                                 {field::tokens, DType::i32, {12}, 260},
                                 {field::targets, DType::i32, {12}, 260}};
  EXPECT_EQ(Corpus::once(from(folder / "pairs.tsv"), Subset::validation, pairs, 3).samples(), 4);
  const std::vector<Field> masked{{field::tokens, DType::i32, {4}, 260},
                                  {field::picked, DType::i32, {2}},
                                  {field::targets, DType::i32, {2}, 260}};
  Corpus once = Corpus::once(from(write_counting(folder, "a", 0, 15)), Subset::validation, masked, 3);
  EXPECT_EQ(once.samples(), 3);
  std::vector<std::int32_t> targets(4, 7);
  FieldTensors to;
  to.set(field::targets, {targets.data(), {2, 2}, DType::i32});
  once.batch(3, to);
  EXPECT_THAT(targets, ElementsAre(-1, -1, -1, -1));
}

}  // namespace
}  // namespace mindpipe
