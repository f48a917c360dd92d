#include "corpus/masked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "corpus/corpus.h"
#include "corpus/files.h"

namespace mindpipe {
namespace {

struct MaskedSample {
  std::vector<std::int32_t> tokens, picked, targets;
  bool operator==(const MaskedSample&) const = default;
};
constexpr int masked_length = 200;

std::vector<Field> masked_fields(int most, int vocabulary = 260) {
  return {{field::tokens, DType::i32, {masked_length}, vocabulary},
          {field::picked, DType::i32, {most}},
          {field::targets, DType::i32, {most}, vocabulary}};
}
Corpus open_masked(int most, std::uint64_t seed = 1) {
  return Corpus(from("synthetic:arithmetic"), Subset::train, masked_fields(most), seed);
}
MaskedSample masked_at(Corpus& corpus, std::int64_t index, int most) {
  MaskedSample s{std::vector<std::int32_t>(masked_length), std::vector<std::int32_t>(most),
                 std::vector<std::int32_t>(most)};
  FieldTensors to;
  to.set(field::tokens, {s.tokens.data(), {1, masked_length}, DType::i32});
  to.set(field::picked, {s.picked.data(), {1, most}, DType::i32});
  to.set(field::targets, {s.targets.data(), {1, most}, DType::i32});
  corpus.batch(index, to);
  return s;
}
std::vector<std::int32_t> original(std::int64_t index) {
  Corpus corpus(
      from("synthetic:arithmetic"), Subset::train,
      {{field::tokens, DType::i32, {masked_length}, 260}, {field::targets, DType::i32, {masked_length}, 260}},
      1);
  std::vector<std::int32_t> tokens(masked_length);
  FieldTensors to;
  to.set(field::tokens, {tokens.data(), {1, masked_length}, DType::i32});
  corpus.batch(index, to);
  return tokens;
}

TEST(Masked, FifteenPercentArePickedAndOfThemEightyMaskedTenChangedTenLeft) {
  Corpus corpus = open_masked(60);
  double picked = 0, masked = 0, left = 0, changed = 0, rows = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const MaskedSample s = masked_at(corpus, i, 60);
    std::vector<std::int32_t> text = original(i);
    rows += masked_length;
    for (int k = 0; k < 60; ++k) {
      if (s.targets[k] < 0) {
        EXPECT_EQ(s.picked[k], -1);
        continue;
      }
      const std::int32_t row = s.picked[k];
      EXPECT_EQ(s.targets[k], text[row]);
      if (k > 0) {
        EXPECT_GT(row, s.picked[k - 1]);
      }
      ++picked;
      if (s.tokens[row] == 259) ++masked;
      else if (s.tokens[row] == text[row]) ++left;
      else ++changed;
      EXPECT_TRUE(s.tokens[row] < 256 || s.tokens[row] == 259);
      text[row] = s.tokens[row];
    }
    EXPECT_EQ(s.tokens, text) << "what is not picked stays";
  }
  EXPECT_NEAR(picked / rows, 0.15, 0.01);
  EXPECT_NEAR(masked / picked, 0.8, 0.03);
  EXPECT_NEAR(changed / picked, 0.1, 0.02);
  EXPECT_NEAR(left / picked, 0.1, 0.02);
}

TEST(Masked, AtMostSoManyArePickedAndNotTheFirstAlone) {
  Corpus corpus = open_masked(5);
  double last = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const MaskedSample s = masked_at(corpus, i, 5);
    EXPECT_THAT(s.targets, testing::Each(testing::Ge(0)));
    EXPECT_THAT(s.picked, testing::WhenSorted(testing::ContainerEq(s.picked)));
    last += s.picked[4];
  }
  EXPECT_GT(last / 40, 0.7 * masked_length);
}

TEST(Masked, IsAFunctionOfSeedAndSample) {
  Corpus one = open_masked(40), again = open_masked(40), other = open_masked(40, 2);
  masked_at(one, 5, 40);
  const MaskedSample s = masked_at(one, 3, 40);
  EXPECT_EQ(s, masked_at(again, 3, 40));
  EXPECT_NE(s.picked, masked_at(other, 3, 40).picked);
  EXPECT_NE(s.picked, masked_at(again, 4, 40).picked);
}

TEST(Masked, AnyOrdinaryTokenIsDrawnWhereOneIdStandsForTwoSpecialTokens) {
  DataConfig data = from("synthetic:arithmetic");
  data.special = {.end = 0, .start = 0, .padding = 1, .mask = 2};
  constexpr int vocabulary = 'z' + 1;
  Corpus corpus(data, Subset::train, masked_fields(60, vocabulary), 1);
  std::set<std::int32_t> drawn;
  for (std::int64_t i = 0; i < 500; ++i) {
    const MaskedSample s = masked_at(corpus, i, 60);
    for (int k = 0; k < 60; ++k)
      if (s.targets[k] >= 0 && s.tokens[s.picked[k]] != s.targets[k]) drawn.insert(s.tokens[s.picked[k]]);
  }
  EXPECT_EQ(drawn.size(), vocabulary - 2u) << "all but end, start and padding; the mask among them";
  EXPECT_EQ(*drawn.begin(), 2);
}

TEST(Masked, AMaskOrPaddingBeyondTheVocabularyIsRefused) {
  expect_error(Exit::bad_configuration, "data.special.mask is 259 and model.vocabulary 259",
               [] { Corpus(from("synthetic:arithmetic"), Subset::train, masked_fields(5, 259), 1); });
  DataConfig data = from("synthetic:arithmetic");
  data.special.padding = 260;
  expect_error(Exit::bad_configuration, "data.special.padding is 260 and model.vocabulary 260",
               [&] { Corpus(data, Subset::train, masked_fields(5, 260), 1); });
}

TEST(Masked, AnotherKindOfSourceIsRefused) {
  DataConfig data = from("synthetic:arithmetic");
  data.train.push_back({"synthetic:shapes", 1});
  expect_error(Exit::bad_configuration,
               "data.train[1]: synthetic:shapes holds pictures, and the model masks tokens of texts; name a "
               "source of its own kind",
               [&] { Corpus(data, Subset::train, masked_fields(5), 1); });
}

}  // namespace
}  // namespace mindpipe
