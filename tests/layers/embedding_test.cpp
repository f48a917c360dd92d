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

Subject::Build embedding(std::int64_t positions, double dropout, std::string_view ids = field::tokens) {
  return [=](Subject& s) {
    const EmbeddingSpec spec{s.setting().vocabulary, 16, positions, dropout, 0.02, ids};
    s.add(std::make_unique<Embedding>(s.context(), s.unit("table"), s.unit("positions"), "embedding", spec));
  };
}

TEST(EmbeddingGradients, OfTheTableAlone) { check_gradients(tokens_only(), embedding(0, 0)); }

TEST(EmbeddingGradients, OfTheTableAndLearnedPositions) { check_gradients(tokens_only(), embedding(20, 0)); }

TEST(EmbeddingGradients, ThroughDropout) { check_gradients(tokens_only(), embedding(16, 0.3)); }

TEST(EmbeddingGradients, OfSourceTokens) {
  Setting setting = tokens_only();
  setting.sources = true;
  check_gradients(setting, embedding(16, 0, field::source));
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
