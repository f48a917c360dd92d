#include <cmath>

#include "harness.h"
#include "layers/embedding.h"
#include "layers/patches.h"
#include "layers/picked_classifier.h"

/// What layers compute, against their formulas in plain loops: differences show that a gradient fits its
/// forward, not that the forward is what it should be.
namespace mindpipe::testing {
namespace {

using Row = std::vector<double>;
constexpr std::int64_t wide = 16;

Row row_of(const std::vector<double>& table, std::int64_t row) {
  return {table.begin() + row * wide, table.begin() + (row + 1) * wide};
}
Row sum_of(Row a, const Row& b, double factor = 1) {
  for (std::size_t j = 0; j < a.size(); ++j) a[j] += factor * b[j];
  return a;
}
double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}
Row normed(const Row& x, const Row& gain, const Row& offset) {
  double mean = 0, variance = 0;
  for (double v : x) mean += v / static_cast<double>(x.size());
  for (double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Row y = x;
  for (std::size_t j = 0; j < x.size(); ++j)
    y[j] = (x[j] - mean) / std::sqrt(variance + 1e-5) * gain[j] + offset[j];
  return y;
}

/// What the harness draws for a field of a batch.
std::int64_t drawn(const std::string& name, std::int64_t i, std::int64_t kinds) {
  return RandomStream{3, purpose_of(name)}.word(static_cast<std::uint64_t>(i)) % kinds;
}
std::int64_t token(const Setting& setting, std::int64_t i) {
  return drawn("tokens", i == 2 ? 5 : i, setting.vocabulary);
}

/// The harness's loss of an output: row(n) is row n of all samples.
template <class MakeRow>
double loss_of(std::int64_t rows, const MakeRow& make_row) {
  const std::vector<double> weights = normals("loss.activation", rows * wide, 1);
  double loss = 0;
  for (std::int64_t n = 0; n < rows; ++n) loss += dot(row_of(weights, n), make_row(n));
  return loss;
}

Subject::Build embedding(EmbeddingSpec spec) {
  return [=](Subject& s) {
    s.add(std::make_unique<Embedding>(s.context(), s.unit("table"), s.unit("positions"), "embedding", spec));
  };
}

Setting tokens_of_two_types(int shards) {
  Setting setting;
  setting.activation = false;
  setting.vocabulary = 100;
  setting.types = 2;
  setting.shards = shards;
  return setting;
}

TEST(Formulas, OfAnEmbeddingWithAFactorTypesPositionsAndANorm) {
  for (int shards : {1, 4}) {
    const Setting setting = tokens_of_two_types(shards);
    EmbeddingSpec spec{.vocabulary = setting.vocabulary, .width = wide, .positions = 12};
    spec.factor = 4;
    spec.types = 2;
    spec.typed = true;
    spec.first_position = 2;
    spec.norm = NormSpec{};
    Subject subject(setting, embedding(spec));
    Whole& v = subject.values;
    const double want = loss_of(setting.samples * setting.rows, [&](std::int64_t n) {
      Row x = sum_of(Row(wide), row_of(v["table.embedding.weight"], token(setting, n)), 4);
      x = sum_of(x, row_of(v["positions.types.weight"], drawn("types", n, 2)));
      x = sum_of(x, row_of(v["positions.positions.weight"], 2 + n % setting.rows));
      return normed(x, v["positions.norm.weight"], v["positions.norm.bias"]);
    });
    EXPECT_NEAR(subject.loss(), want, 1e-10) << shards;
  }
}

TEST(Formulas, OfAnEmbeddingWithSines) {
  for (Sinusoids form : {Sinusoids::below_base, Sinusoids::up_to_base}) {
    const Setting setting = tokens_of_two_types(2);
    EmbeddingSpec spec{.vocabulary = setting.vocabulary, .width = wide};
    spec.factor = 4;
    spec.sinusoids = form;
    spec.first_position = 2;
    Subject subject(setting, embedding(spec));
    const double want = loss_of(setting.samples * setting.rows, [&](std::int64_t n) {
      Row x = sum_of(Row(wide), row_of(subject.values["table.embedding.weight"], token(setting, n)), 4);
      for (int i = 0; i < 8; ++i) {
        const double steps = form == Sinusoids::below_base ? 8 : 7,
                     angle = static_cast<double>(2 + n % setting.rows) * std::pow(1e4, -i / steps);
        x[static_cast<std::size_t>(i)] += std::sin(angle);
        x[static_cast<std::size_t>(i + 8)] += std::cos(angle);
      }
      return x;
    });
    EXPECT_NEAR(subject.loss(), want, 1e-10);
  }
}

TEST(Formulas, OfPatchesBehindAClassToken) {
  Setting setting;
  setting.activation = false;
  setting.picture = {2, 2, 14, 2, {0.5f, 0.4f}, {0.5f, 0.25f}};
  for (int shards : {1, 2, 4}) {
    setting.shards = shards;
    Subject subject(setting, [](Subject& s) {
      s.add(std::make_unique<PatchEmbedding>(s.context(), s.unit("embedding"), "embedding",
                                             PatchSpec{s.setting().picture, wide}));
    });
    Whole& v = subject.values;
    const double want = loss_of(setting.samples * 8, [&](std::int64_t n) {
      const std::int64_t sample = n / 8, row = n % 8;
      const Row position = row_of(v["embedding.positions.weight"], row);
      if (row == 0) return sum_of(v["embedding.class.weight"], position);
      Row y = sum_of(v["embedding.patches.bias"], position);
      for (std::int64_t k = 0; k < 8; ++k) {  // channel, row, column of the patch
        const std::int64_t channel = k / 4,
                           at = ((sample * 2 + channel) * 2 + k / 2 % 2) * 14 + (row - 1) * 2 + k % 2;
        const double byte = static_cast<std::uint8_t>(
                         RandomStream{3, purpose_of("picture")}.word(static_cast<std::uint64_t>(at))),
                     number = (byte / 255 - static_cast<double>(setting.picture.mean[channel])) /
                              static_cast<double>(setting.picture.deviation[channel]);
        for (std::size_t j = 0; j < wide; ++j)
          y[j] += v["embedding.patches.weight"][j * 8 + static_cast<std::size_t>(k)] * number;
      }
      return y;
    });
    EXPECT_NEAR(subject.loss(), want, 1e-10) << shards;
  }
}

TEST(Formulas, OfPickedRowsBehindATransform) {
  Setting setting;
  setting.classifier = true;
  setting.vocabulary = 200;
  setting.targets = 3;
  setting.picks = true;
  for (int shards : {1, 4}) {
    setting.shards = shards;
    Subject subject(setting, [](Subject& s) {
      const SoftmaxSpec spec{.vocabulary = 200, .width = wide, .bias = true, .label_smoothing = 0.1};
      s.add(std::make_unique<PickedClassifier>(s.context(), s.unit("table"), s.unit("head"), spec,
                                               TransformSpec{true, Activation::gelu_exact, NormSpec{}}));
    });
    Whole& v = subject.values;
    double want = 0;
    for (std::int64_t i : {0, 2, 4, 5}) {  // targets 1 and 3 do not count
      Row x = row_of(v["input.activation"], i / 3 * setting.rows + (3 * i + 1) % setting.rows), h = x;
      for (std::size_t j = 0; j < wide; ++j) {
        const double z = dot(row_of(v["head.transform.weight"], static_cast<std::int64_t>(j)), x) +
                         v["head.transform.bias"][j];
        h[j] = z / 2 * std::erfc(-z / std::sqrt(2.0));
      }
      h = normed(h, v["head.final_norm.weight"], v["head.final_norm.bias"]);
      double sum = 0, total = 0, of_target = 0;
      for (std::int64_t word = 0; word < 200; ++word) {
        const double logit = dot(row_of(v["table.embedding.weight"], word), h) +
                             v["head.embedding.bias"][static_cast<std::size_t>(word)];
        sum += std::exp(logit);
        total += logit;
        if (word == drawn("targets", i, 200)) of_target = logit;
      }
      want += 0.25 * (std::log(sum) - 0.9 * of_target - 0.1 / 200 * total);
    }
    EXPECT_NEAR(subject.loss(), want, 1e-10) << shards;
  }
}

}  // namespace
}  // namespace mindpipe::testing
