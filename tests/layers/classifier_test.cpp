#include "layers/classifier.h"

#include "adapters.h"
#include "gradient_check.h"
#include "layers/embedding.h"

namespace mindpipe::testing {
namespace {

/// 200 words are padded to 256: with four shards the last one has 8 words and 56 rows of padding.
Setting words(std::int64_t vocabulary = 200) {
  Setting setting;
  setting.classifier = true;
  setting.vocabulary = vocabulary;
  setting.step = 1e-3;  // a loss of many tokens is large beside one word's gradient
  return setting;
}

Subject::Build classifier(NormKind norm, bool offset, double label_smoothing = 0) {
  return [=](Subject& s) {
    ClassifierSpec spec{s.setting().vocabulary, 16};
    spec.norm = norm;
    spec.norm_offset = offset;
    spec.label_smoothing = label_smoothing;
    s.add(std::make_unique<Classifier>(s.context(), s.unit("table"), s.unit("head"), spec));
  };
}

/// An embedding and a classifier that share their table, and a map between them.
void tied(Subject& s) {
  const std::int64_t vocabulary = s.setting().vocabulary;
  s.add(std::make_unique<Embedding>(s.context(), s.unit("table"), s.unit("positions"), "embedding",
                                    EmbeddingSpec{vocabulary, 16, 8, 0, 0.02, field::tokens, 2, 0}));
  s.add(std::make_unique<LinearLayer>(s.context(), s.unit("map"),
                                      LinearSpec{{{"map", 16}}, 16, Split::out, true}));
  s.add(std::make_unique<Classifier>(s.context(), s.unit("table"), s.unit("head"),
                                     ClassifierSpec{vocabulary, 16, 0.02, 2, 1}));
}

TEST(ClassifierGradients, OfATableAndItsNorm) {
  check_gradients(words(), classifier(NormKind::layer, true));
  check_gradients(words(), classifier(NormKind::rms, false));
}

TEST(ClassifierGradients, WithSmoothedLabels) {
  check_gradients(words(), classifier(NormKind::layer, true, 0.1));
}

TEST(ClassifierGradients, WhereAShardHasNoWords) {
  check_gradients(words(70), classifier(NormKind::rms, false));
}

TEST(ClassifierGradients, OverMoreTokensThanAChunkHolds) {
  Setting setting = words(64);
  setting.rows = 140;
  static_assert(2 * 140 > usual_token_chunk);
  check_gradients(setting, classifier(NormKind::rms, false));
}

TEST(ClassifierGradients, OfATableThatAnEmbeddingShares) {
  Setting setting = words();
  setting.activation = false;
  check_gradients(setting, tied);
}

TEST(ClassifierGradients, DifferInRoundingOnlyBetweenShards) {
  check_rounding(words(), classifier(NormKind::layer, true, 0.1));
}

}  // namespace
}  // namespace mindpipe::testing
