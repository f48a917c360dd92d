#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <numeric>

#include "corpus/blend.h"
#include "corpus/dataset.h"
#include "corpus/files.h"
#include "corpus/mersenne.h"
#include "corpus/sample_order.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
const CountedDocuments five({7, 3, 12, 1, 9});

std::vector<std::int64_t> line(const SampleOrder& order) {
  std::vector<std::int64_t> documents;
  for (std::int64_t p = 0; p < order.positions(); ++p) documents.push_back(order.document(p));
  return documents;
}
std::string starts(const SampleOrder& order) {
  std::string text;
  for (std::int64_t k = 0; k <= order.samples(); ++k)
    text += fmt::format("({},{})", order.start(k).position, order.start(k).offset);
  return text;
}
std::vector<std::int64_t> drawn(const SampleOrder& order) {
  std::vector<std::int64_t> samples;
  for (std::int64_t k = 0; k < order.samples(); ++k) samples.push_back(order.drawn(k));
  return samples;
}

TEST(SampleOrder, OneEpochIsTheGoldenOne) {
  const SampleOrder order(five, 4, 1234);
  EXPECT_THAT(line(order), ElementsAre(4, 0, 1, 2, 3));
  EXPECT_EQ(starts(order), "(0,0)(0,4)(0,8)(1,3)(2,0)(3,1)(3,5)(3,9)");
  EXPECT_THAT(drawn(order), ElementsAre(5, 2, 6, 3, 1, 0, 4));
}

TEST(SampleOrder, TwoEpochsTogetherAreTheGoldenOnes) {
  const SampleOrder order(five, 4, 1234, {2, false});
  EXPECT_THAT(line(order), ElementsAre(2, 2, 4, 1, 0, 3, 4, 0, 1, 3));
  EXPECT_EQ(starts(order),
            "(0,0)(0,4)(0,8)(1,0)(1,4)(1,8)(2,0)(2,4)(2,8)(4,0)(4,4)(6,0)(6,4)(6,8)(7,3)(8,0)");
  EXPECT_THAT(drawn(order), ElementsAre(7, 12, 2, 3, 1, 14, 5, 4, 0, 8, 6, 13, 11, 10, 9));
}

TEST(SampleOrder, TwoEpochsWithTheLastApartAreTheGoldenOnes) {
  const SampleOrder order(five, 4, 1234, {2, true});
  EXPECT_THAT(line(order), ElementsAre(4, 0, 1, 2, 3, 3, 2, 1, 0, 4));
  EXPECT_EQ(starts(order),
            "(0,0)(0,4)(0,8)(1,3)(2,0)(3,1)(3,5)(3,9)(5,0)(6,3)(6,7)(6,11)(8,0)(8,4)(9,1)(9,5)");
  EXPECT_THAT(drawn(order), ElementsAre(5, 0, 3, 4, 2, 6, 1, 12, 8, 10, 14, 7, 13, 9, 11));
}

TEST(SampleOrder, TheLastEpochStandsApartBelowFourFifthsOfItsSamples) {
  EXPECT_EQ(epochs_for(32, 4, 1), (Epochs{1, false}));
  EXPECT_EQ(epochs_for(32, 4, 7), (Epochs{1, false}));
  EXPECT_EQ(epochs_for(32, 4, 8), (Epochs{2, true}));    // 1 of 7
  EXPECT_EQ(epochs_for(32, 4, 11), (Epochs{2, true}));   // 4 of 7: below 5, the whole part of 5.6
  EXPECT_EQ(epochs_for(32, 4, 12), (Epochs{2, false}));  // 5 of 7
  EXPECT_EQ(epochs_for(32, 4, 15), (Epochs{2, false}));
  EXPECT_EQ(epochs_for(32, 4, 16), (Epochs{3, true}));
}

TEST(SampleOrder, WithoutASeedIsTheOrderOfTheFile) {
  const SampleOrder order(five, 4, std::nullopt);
  EXPECT_THAT(line(order), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(drawn(order), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(SampleOrder, EmptyDocumentsAreNeverStartedIn) {
  const SampleOrder order(CountedDocuments({0, 4, 0, 0, 5, 0}), 4, std::nullopt);
  EXPECT_EQ(starts(order), "(1,0)(4,0)(4,4)");
}

TEST(Mersenne, DrawsTheWordsOfTheReference) {
  Mersenne random(5489);  // the generator's own default seed; its 10,000th word is in the C++ standard
  std::uint32_t word = 0;
  for (int i = 0; i < 10000; ++i) word = random.word();
  EXPECT_EQ(word, 4123659995u);
}

TEST(Mersenne, ReachesBeyond32Bits) {
  Mersenne random(1), same(1);
  const std::uint64_t largest = (std::uint64_t{1} << 40) - 1;
  const std::uint64_t high = same.word(), low = same.word();
  EXPECT_EQ(random.up_to(largest), (high << 32 | low) & largest);
}

/// Output of a Python program that imports numpy; empty where no Python can.
std::string run_numpy(const std::string& program) {
  const std::string command = "/usr/bin/python3 -c '" + program + "' 2>/dev/null";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  char buffer[4096];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe.get())) text += buffer;
  return text;
}

TEST(Mersenne, ShufflesAsNumpyDoes) {
  const std::vector<std::pair<std::uint32_t, int>> cases{
      {0, 1}, {1, 2}, {1234, 5}, {4294967295u, 1000}, {77, 65537}};
  std::string program = "import numpy, zlib\nfor s, n in [";
  for (const auto& [seed, n] : cases) program += fmt::format("({},{}),", seed, n);
  program +=
      "]:\n a = numpy.arange(n, dtype=numpy.int64); r = numpy.random.RandomState(s); r.shuffle(a); b = "
      "numpy.arange(7); r.shuffle(b)\n"
      " h = 0\n for x in list(a) + list(b): h = (h * 31 + int(x)) % 1000000007\n print(h)\n";
  const std::string theirs = run_numpy(program);
  if (theirs.empty()) GTEST_SKIP() << "/usr/bin/python3 has no numpy to compare with";
  std::string ours;
  for (const auto& [seed, n] : cases) {
    Mersenne random(seed);
    std::vector<std::int64_t> values(n), seven(7);
    std::iota(values.begin(), values.end(), 0);
    std::iota(seven.begin(), seven.end(), 0);
    random.shuffle(values.data(), n);
    random.shuffle(seven.data(), 7);
    values.insert(values.end(), seven.begin(), seven.end());
    std::int64_t hash = 0;
    for (const std::int64_t x : values) hash = (hash * 31 + x) % 1000000007;
    ours += fmt::format("{}\n", hash);
  }
  EXPECT_EQ(ours, theirs);
}

TEST(Blend, IsTheGoldenOne) {
  Blend blend({.5, .3, .2});
  std::string text;
  for (int n = 0; n < 20; ++n) text += fmt::format(" {}:{}", blend.at(n).dataset, blend.at(n).sample);
  EXPECT_EQ(text, " 0:0 1:0 2:0 0:1 1:1 0:2 2:1 0:3 1:2 0:4 0:5 1:3 2:2 0:6 1:4 0:7 2:3 0:8 1:5 0:9");
}

TEST(Blend, OfEqualSourcesTheFirstGoesFirst) {
  Blend blend({1, 1, 1});
  for (int n = 0; n < 9; ++n) EXPECT_EQ(blend.at(n).dataset, n % 3) << n;
}

TEST(Blend, IsTheSameFromAnyEnd) {
  Blend forward({3, 1, 1.5}), backward({3, 1, 1.5});
  std::vector<Blend::Choice> there;
  for (int n = 0; n < 9000; ++n) there.push_back(forward.at(n));
  for (int n = 8999; n >= 0; n -= 7) EXPECT_EQ(backward.at(n), there[n]) << n;
  std::vector<std::int64_t> next(3, 0);
  for (const auto& choice : there) EXPECT_EQ(choice.sample, next[choice.dataset]++);
  EXPECT_NEAR(static_cast<double>(next[0]) / 9000, 3 / 5.5, 1e-3);
}

TEST(DocumentDataset, CrossesDocumentsAndSharesOneTokenWithTheNext) {
  DocumentDataset dataset(std::make_unique<CountedDocuments>(five), 4, std::nullopt);
  std::vector<std::int32_t> tokens(5);
  for (int round = 0; round < 3; ++round)
    for (int k = 0; k < 7; ++k) {
      dataset.text(round * 7 + k, tokens.data());
      EXPECT_THAT(tokens, ElementsAre(4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3, 4 * k + 4));
    }
}

TEST(DocumentDataset, FollowsTheGoldenOrder) {
  DocumentDataset dataset(std::make_unique<CountedDocuments>(five), 4, 1234);
  std::vector<std::int32_t> tokens(5);
  dataset.text(0, tokens.data());  // sample 5 of the line begins in document 2 at token 1
  EXPECT_THAT(tokens, ElementsAre(11, 12, 13, 14, 15));
  dataset.text(1, tokens.data());  // sample 2: the last token of document 4, then document 0
  EXPECT_THAT(tokens, ElementsAre(31, 0, 1, 2, 3));
}

TEST(DocumentDataset, EveryRoundHasAnOrderOfItsOwnThatDependsOnNothingElse) {
  DocumentDataset forward(std::make_unique<CountedDocuments>(five), 4, 1234),
      jumping(std::make_unique<CountedDocuments>(five), 4, 1234);
  std::vector<std::vector<std::int32_t>> there(70, std::vector<std::int32_t>(5));
  for (int i = 0; i < 70; ++i) forward.text(i, there[i].data());
  EXPECT_NE(std::vector(there.begin(), there.begin() + 7),
            std::vector(there.begin() + 7, there.begin() + 14));
  std::vector<std::int32_t> tokens(5);
  for (const int i : {69, 3, 33, 0, 14, 13, 7, 6, 68}) {
    jumping.text(i, tokens.data());
    EXPECT_EQ(tokens, there[i]) << i;
  }
  jumping.text(std::int64_t{1} << 50, tokens.data());
}

TEST(DocumentDataset, APlannedRunHasTheOrderOfAllItsEpochs) {
  DocumentDataset dataset(std::make_unique<CountedDocuments>(five), 4, 1234, 14);  // two epochs together
  std::vector<std::int32_t> tokens(5);
  dataset.text(0, tokens.data());  // sample 7 of the line: document 4 from token 4
  EXPECT_THAT(tokens, ElementsAre(27, 28, 29, 30, 31));
  dataset.text(15, tokens.data());  // beyond the plan: a round of one epoch
}

TEST(DocumentDataset, RefusesDocumentsShorterThanOneSample) {
  expect_error(
      Exit::bad_data, "counted: the file has 4 tokens (a sample takes 5: data.sequence and one more)", [] {
        DocumentDataset(std::make_unique<CountedDocuments>(std::vector<std::int64_t>{3, 0, 1}), 4, 1);
      });
  expect_error(Exit::bad_data, "counted: the file has no tokens (a sample takes 5)", [] {
    DocumentDataset(std::make_unique<CountedDocuments>(std::vector<std::int64_t>{}), 4, 1);
  });
}

}  // namespace
}  // namespace mindpipe
