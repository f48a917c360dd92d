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
                                    EmbeddingSpec{vocabulary, 16, 8, 0, 0.02, field::tokens, 2, 0}));
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
    TransformSpec transform{s.setting().picks, activation};
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

/// What a table and a bias make of rows x [n, 16]: hits by plain loops. Logits nearer than rounding to the
/// target's are refused: its rank would be anybody's guess. Words that are alike have equal ones.
std::vector<double> counted(const std::vector<double>& x, const std::vector<double>& table,
                            const std::vector<double>& bias, const std::vector<std::int32_t>& targets,
                            std::size_t each) {
  std::vector<double> hits(Hits::places);
  for (std::size_t first = 0; first < targets.size(); first += each) {
    int all = 0, right = 0;
    for (std::size_t n = first; n < first + each; ++n) {
      if (targets[n] < 0) continue;
      const auto logit = [&](std::size_t word) {
        double sum = bias[word];
        for (std::size_t j = 0; j < 16; ++j) sum += x[n * 16 + j] * table[word * 16 + j];
        return sum;
      };
      const auto target = static_cast<std::size_t>(targets[n]);
      const double own = logit(target);
      int before = 0;
      for (std::size_t word = 0; word < bias.size(); ++word) {
        const double other = logit(word);
        if (other == own) before += word < target;
        else {
          before += other > own;
          EXPECT_GT(std::abs(other - own), 1e-5);
        }
      }
      ++all;
      right += before == 0;
      hits[Hits::right] += before == 0;
      hits[Hits::within_five] += before < 5;
    }
    hits[Hits::exact] += all > 0 && right == all;
    hits[Hits::samples] += all > 0;
  }
  return hits;
}

/// The word with the largest logit.
std::int32_t likeliest(const double* x, const std::vector<double>& table, const std::vector<double>& bias) {
  std::vector<double> logits = bias;
  for (std::size_t i = 0; i < table.size(); ++i) logits[i / 16] += x[i % 16] * table[i];
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST(ClassifierHits, AreThoseOfPlainLoopsAndTheLowestOfEqualWordsWins) {
  for (DType dtype : {DType::f64, DType::f32})
    for (int shards : {1, 2, 4}) {
      Setting setting = words();
      setting.dtype = dtype;
      setting.shards = shards;
      setting.samples = 70;
      static_assert(70 * 8 > usual_token_chunk);
      Subject subject(setting, plain_with_bias());
      std::vector<double>&table = subject.values["table.embedding.weight"],
      &bias = subject.values["head.embedding.bias"], &x = subject.values["input.activation"];
      const Tensor field = subject.field(field::targets);
      std::vector<std::int32_t> targets(field.as<std::int32_t>(), field.as<std::int32_t>() + field.count());
      // Words 40, 150 and 190 are alike, in as many shards. Each row is drawn to its target's word. Of the
      // first ten samples every third is right everywhere, of the others all but a word that is like a lower
      // one.
      for (std::size_t j = 0; j < 16; ++j) table[150 * 16 + j] = table[190 * 16 + j] = table[40 * 16 + j];
      bias[150] = bias[190] = bias[40];
      for (std::size_t n = 0; n < targets.size(); ++n) {
        if (n % 8 == 3) targets[n] = n % 3 == 0 ? 40 : n % 3 == 1 ? 150 : 190;
        if (n / 8 == 5) targets[n] = -1;
        if (targets[n] < 0) continue;
        const auto target = static_cast<std::size_t>(targets[n]);
        for (std::size_t j = 0; j < 16; ++j) x[n * 16 + j] += (n < 80 ? 20 : 0.4) * table[target * 16 + j];
        if (n < 80 && (n % 8 != 3 || n / 8 % 3 == 0)) targets[n] = likeliest(&x[n * 16], table, bias);
      }
      std::copy(targets.begin(), targets.end(), field.as<std::int32_t>());
      subject.write("table.embedding.weight");
      subject.write("head.embedding.bias");
      subject.loss();
      const std::vector<double> want = counted(x, table, bias, targets, 8);
      EXPECT_EQ(subject.hits(), want);
      EXPECT_EQ(want[Hits::exact], 4);
      EXPECT_GT(want[Hits::within_five], want[Hits::right] + 5);
      EXPECT_EQ(want[Hits::samples], 69);
      subject.loss();
      EXPECT_EQ(subject.hits()[Hits::right], 2 * want[Hits::right]) << "hits are added to those before";
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
  setting.rows = 260;
  static_assert(2 * 260 > usual_token_chunk);
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
