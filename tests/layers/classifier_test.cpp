#include "layers/classifier.h"

#include "adapters.h"
#include "gradient_check.h"
#include "layers/embedding.h"
#include "layers/picked_classifier.h"

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
                                    EmbeddingSpec{vocabulary, 16, 8, 0, 0.02, false, 2, 0}));
  s.add(std::make_unique<LinearLayer>(s.context(), s.unit("map"),
                                      LinearSpec{{{"map", 16}}, 16, Split::out, true}));
  s.add(std::make_unique<Classifier>(s.context(), s.unit("table"), s.unit("head"),
                                     ClassifierSpec{vocabulary, 16, 0.02, 2, 1}));
}

/// What comes is classified as it is, with a bias for each word.
Subject::Build plain_with_bias() {
  return [=](Subject& s) {
    ClassifierSpec spec{s.setting().vocabulary, 16};
    spec.normed = false;
    spec.bias = true;
    spec.label_smoothing = 0.1;
    s.add(std::make_unique<Classifier>(s.context(), s.unit("table"), s.unit("head"), spec));
  };
}

/// A head over some rows: BERT's, with a product, an activation and a norm, or ViT's, which only norms.
Subject::Build picked(Activation activation, bool normed = true) {
  return [=](Subject& s) {
    SoftmaxSpec spec{s.setting().vocabulary, 16};
    spec.bias = true;
    TransformSpec transform{activation};
    if (normed) transform.norm = NormSpec{};
    s.add(std::make_unique<PickedClassifier>(s.context(), s.unit("table"), s.unit("head"), spec, transform));
  };
}

Setting masked_words() {
  Setting setting = words();
  setting.targets = 3;
  setting.picks = true;
  return setting;
}
/// A class for each sample, of its first row.
Setting classes() {
  Setting setting = words(10);
  setting.targets = 1;
  return setting;
}

TEST(ClassifierGradients, WithABiasAndWithoutANorm) {
  check_gradients(words(), plain_with_bias());
  check_gradients(words(70), plain_with_bias());
  check_rounding(words(), plain_with_bias());
}

TEST(ClassifierGradients, OfPickedRowsBehindATransform) {
  for (Activation activation : {Activation::gelu, Activation::gelu_exact})
    check_gradients(masked_words(), picked(activation));
  check_gradients(masked_words(), picked(Activation::silu, false));
  check_rounding(masked_words(), picked(Activation::gelu_exact));
}

TEST(ClassifierGradients, OfClassesByTheFirstRow) {
  check_gradients(classes(), picked(Activation::none));
  check_gradients(classes(), picked(Activation::none, false));
}

TEST(PickedClassifier, LeavesRowsThatNobodyPickedWithoutAGradient) {
  Setting setting = masked_words();
  for (int shards : {1, 2, 4}) {
    setting.shards = shards;
    const std::vector<double> dx =
        Subject(setting, picked(Activation::gelu_exact)).gradients().at("input.activation");
    // Rows 1, 4 (whose target does not count) and 7 of the first sample, none, 5 and 0 of the second.
    for (std::int64_t row = 0; row < 16; ++row)
      EXPECT_EQ(dx[static_cast<std::size_t>(row * 16)] != 0, row == 1 || row == 7 || row == 8 || row == 13)
          << row;
  }
}

TEST(ClassifierWords, AreTheLargestLogitsAndTheLowestOfEqualOnes) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (int shards : {1, 2, 4}) {
      Setting setting = words();
      setting.dtype = dtype;
      setting.shards = shards;
      Subject subject(setting, plain_with_bias());
      std::vector<double>&table = subject.values["table.embedding.weight"],
      &bias = subject.values["head.embedding.bias"];
      // Word 150 is like 40 in all, and both are larger than others for some rows; 64 shards further lies
      // 190.
      for (std::int64_t j = 0; j < 16; ++j) table[150 * 16 + j] = table[190 * 16 + j] = table[40 * 16 + j];
      bias[150] = bias[190] = bias[40] = 3;
      subject.write("table.embedding.weight");
      subject.write("head.embedding.bias");
      subject.loss();
      const std::vector<double>&x = subject.values["input.activation"], found = subject.words();
      ASSERT_EQ(found.size(), 16u);
      int equal = 0;
      for (std::size_t n = 0; n < found.size(); ++n) {
        const auto logit = [&](std::size_t word) {
          double sum = bias[word];
          for (std::size_t j = 0; j < 16; ++j) sum += x[n * 16 + j] * table[word * 16 + j];
          return sum;
        };
        double largest = -1e300;
        for (std::size_t word = 0; word < 200; ++word) largest = std::max(largest, logit(word));
        EXPECT_NEAR(logit(static_cast<std::size_t>(found[n])), largest, dtype == DType::bf16 ? 0.1 : 1e-4)
            << n;
        EXPECT_TRUE(found[n] != 150 && found[n] != 190) << "the lowest wins";
        equal += found[n] == 40;
      }
      EXPECT_GT(equal, 0);
    }
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
