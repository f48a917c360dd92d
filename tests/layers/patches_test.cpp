#include "layers/patches.h"

#include "gradient_check.h"
#include "layers/picked_classifier.h"

namespace mindpipe::testing {
namespace {

/// Seven patches of two channels: with the class token eight rows.
Setting strips() {
  Setting setting;
  setting.activation = false;
  setting.picture = {2, 2, 14, 2, {0.5f, 0.4f}, {0.5f, 0.25f}};
  return setting;
}
/// Four patches: five rows, which two and four shards pad to six and eight. The head reads rows 1, 4, 2.
Setting padded() {
  Setting setting = strips();
  setting.picture.height = setting.picture.width = 4;
  setting.rows = 5;
  setting.classifier = true;
  setting.vocabulary = 10;
  setting.targets = 3;
  setting.picks = true;
  setting.step = 1e-3;
  return setting;
}

Subject::Build patches(double dropout, bool head = false) {
  return [=](Subject& s) {
    const PatchSpec spec{s.setting().picture, 16, dropout};
    s.add(std::make_unique<PatchEmbedding>(s.context(), s.unit("embedding"), "embedding", spec));
    const SoftmaxSpec softmax{s.setting().vocabulary, 16};
    if (head)
      s.add(
          std::make_unique<PickedClassifier>(s.context(), s.unit("table"), s.unit("head"), softmax,
                                             TransformSpec{s.setting().picks, Activation::none, NormSpec{}}));
  };
}

TEST(PatchGradients, OfTheProductTheClassTokenAndPositions) {
  check_gradients(strips(), patches(0));
  check_gradients(strips(), patches(0.3));
  check_rounding(strips(), patches(0.3));
}

TEST(PatchGradients, WhereRowsArePadded) {
  Setting setting = padded();
  setting.without_gradient = {"embedding.class.weight"};  // nobody reads row 0
  check_gradients(setting, patches(0, true));
}

TEST(Patches, NeitherTheClassTokenNorPaddingHasTheBias) {
  Setting five_rows = strips();
  five_rows.picture.height = five_rows.picture.width = 4;
  five_rows.shards = 4;  // which pad them to eight, each with a gradient of its own here
  for (const Setting& setting : {strips(), five_rows}) {
    const Whole gradients = Subject(setting, patches(0)).gradients();
    const std::vector<double>&positions = gradients.at("embedding.positions.weight"),
          &bias = gradients.at("embedding.patches.bias"), &token = gradients.at("embedding.class.weight");
    for (std::size_t j = 0; j < 16; ++j) {
      double behind = 0;
      for (std::size_t row = 1; row < positions.size() / 16; ++row) behind += positions[row * 16 + j];
      EXPECT_NEAR(bias[j], behind, 1e-12);
      EXPECT_EQ(token[j], positions[j]);
    }
  }
}

TEST(Patches, RowsArePaddedToAMultipleOfTheShards) {
  const PictureShape vit{3, 224, 224, 16};
  EXPECT_EQ(PatchEmbedding::padded_rows(vit, 1), 197);
  EXPECT_EQ(PatchEmbedding::padded_rows(vit, 2), 198);
  EXPECT_EQ(PatchEmbedding::padded_rows(vit, 4), 200);
}

}  // namespace
}  // namespace mindpipe::testing
