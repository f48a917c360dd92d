#include "layers/embedding.h"

#include "gradient_check.h"

namespace mindpipe::testing {
namespace {

Setting tokens_only() {
  Setting setting;
  setting.activation = false;
  setting.vocabulary =
      300;  // padded to 320, 384 and 512 rows: the last of four shards has rows of padding only
  setting.rows = 16;
  return setting;
}

Subject::Build embedding(std::int64_t positions, double dropout, bool source = false) {
  return [=](Subject& s) {
    const EmbeddingSpec spec{s.setting().vocabulary, 16, positions, dropout, 0.02, source};
    s.add(std::make_unique<Embedding>(s.context(), s.unit("table"), s.unit("positions"), "embedding", spec));
  };
}

TEST(EmbeddingGradients, OfTheTableAlone) { check_gradients(tokens_only(), embedding(0, 0)); }

TEST(EmbeddingGradients, OfTheTableAndLearnedPositions) { check_gradients(tokens_only(), embedding(20, 0)); }

TEST(EmbeddingGradients, ThroughDropout) { check_gradients(tokens_only(), embedding(16, 0.3)); }

TEST(EmbeddingGradients, OfSourceTokens) {
  Setting setting = tokens_only();
  setting.sources = true;
  check_gradients(setting, embedding(16, 0, true));
}

/// Everything that an embedding may have.
Subject::Build full(double dropout, std::int64_t padding = -1) {
  return [=](Subject& s) {
    EmbeddingSpec spec{.vocabulary = s.setting().vocabulary, .width = 16, .positions = 18};
    spec.dropout = dropout;
    spec.factor = 4;
    spec.types = 2;
    spec.padding = padding;
    spec.first_position = 2;
    spec.norm = NormSpec{};
    s.add(std::make_unique<Embedding>(s.context(), s.unit("table"), s.unit("positions"), "embedding", spec));
  };
}

/// A factor, and sines instead of learned positions.
Subject::Build sines(Sinusoids form) {
  return [=](Subject& s) {
    EmbeddingSpec spec{.vocabulary = s.setting().vocabulary, .width = 16};
    spec.factor = 4;
    spec.sinusoids = form;
    spec.first_position = 2;
    s.add(std::make_unique<Embedding>(s.context(), s.unit("table"), s.unit("positions"), "embedding", spec));
  };
}

TEST(EmbeddingGradients, ThroughFactorTypesPositionsNormAndDropout) {
  Setting setting = tokens_only();
  setting.types = 2;
  check_gradients(setting, full(0));
  check_gradients(setting, full(0.3));
  check_rounding(setting, full(0));
}

TEST(EmbeddingGradients, WhereAllTokensAreOfTheFirstType) {
  Subject subject(tokens_only(), full(0));
  const Whole gradients = subject.gradients();
  const std::vector<double>& types = gradients.at("positions.types.weight");
  for (std::size_t i = 0; i < types.size(); ++i) EXPECT_EQ(types[i] != 0, i < 16) << i;
  check_gradients(tokens_only(), full(0));
}

TEST(EmbeddingGradients, BesideSines) {
  for (Sinusoids form : {Sinusoids::below_base, Sinusoids::up_to_base})
    check_gradients(tokens_only(), sines(form));
}

TEST(EmbeddingGradients, LeaveThePaddingTokensRowAlone) {
  const Setting setting = tokens_only();
  Subject plain(setting, full(0));
  const Whole all = plain.gradients();
  const std::vector<double>& table = all.at("table.embedding.weight");
  // A row that has a gradient, of a token that is then called padding.
  std::size_t row = 0;
  while (table[row * 16] == 0) ++row;
  for (int shards : {1, 2, 4}) {
    Setting cut = setting;
    cut.shards = shards;
    Whole without = Subject(cut, full(0, static_cast<std::int64_t>(row))).gradients();
    const Whole with = Subject(cut, full(0)).gradients();
    std::vector<double>& left = without.at("table.embedding.weight");
    for (std::size_t j = row * 16; j < row * 16 + 16; ++j) {
      EXPECT_EQ(left[j], 0);
      left[j] = with.at("table.embedding.weight")[j];
    }
    EXPECT_TRUE(without == with) << "no other row is left out";
  }
}

TEST(EmbeddingGradients, AreTheSameBitsForEveryNumberOfShards) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    Setting setting = tokens_only();
    setting.dtype = dtype;
    const Whole alone = Subject(setting, embedding(16, 0.1)).gradients();
    for (int shards : {2, 4}) {
      setting.shards = shards;
      EXPECT_TRUE(Subject(setting, embedding(16, 0.1)).gradients() == alone)
          << shards << " shards in " << name_of(dtype);
    }
  }
}

TEST(Embedding, PadsTheVocabularySoThatEveryShardHasWholeGroups) {
  EXPECT_EQ(padded_vocabulary(256, 4), 256);
  EXPECT_EQ(padded_vocabulary(257, 1), 320);
  EXPECT_EQ(padded_vocabulary(50257, 1), 50304);
  EXPECT_EQ(padded_vocabulary(50257, 8), 50688);
}

}  // namespace
}  // namespace mindpipe::testing
