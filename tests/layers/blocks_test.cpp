#include "adapters.h"
#include "gradient_check.h"
#include "layers/attention.h"
#include "layers/bridge.h"
#include "layers/embedding.h"
#include "layers/mlp.h"
#include "layers/recompute.h"

namespace mindpipe::testing {
namespace {

/// What PostNormBlock does in one pass, written as the formula stands: a sum, then its norm.
class SumThenNorm final : public NormedBlock {
 public:
  using NormedBlock::NormedBlock;
  Boundary forward(Boundary in, Tape& tape) override {
    const Tensor x = in.activation, sum = tape.keep(x.shape, x.dtype);
    context_.backend.residual({.x = x,
                               .branch = branch_->forward(x, in, tape),
                               .bias = bias(),
                               .dropout = dropout(tape),
                               .sequence = sequence_part_of(context_, x),
                               .y = sum});
    return {norm_.forward(sum, tape), in.encoder_output};
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    const Tensor dy = dout.activation, dsum = tape.scratch(dy.shape, dy.dtype);
    norm_.backward(dy, {}, dsum, tape);
    context_.backend.add({dsum, branch_->backward(branch_gradient(dsum, tape), dout, tape), dsum});
    return {dsum, dout.encoder_output};
  }
};

template <class Block = ResidualBlock>
std::unique_ptr<Layer> block(Subject& s, const std::string& name, std::unique_ptr<Branch> branch,
                             double dropout) {
  Unit& unit = s.unit(name);
  Norm norm(s.context(), unit, "norm", NormKind::layer, 16, 1e-5, true);
  return std::make_unique<Block>(s.context(), norm, std::move(branch), residual_bias(unit, "output", 16),
                                 dropout, name);
}

/// The blocks of a decoder's layer: self-attention, cross-attention when there is a memory, MLP.
template <class Block = ResidualBlock>
Subject::Build layer(double dropout, bool recompute) {
  return [=](Subject& s) {
    const auto add = [&](const std::string& name, std::unique_ptr<Branch> branch) {
      auto made = block<Block>(s, name, std::move(branch), dropout);
      if (recompute) s.add(std::make_unique<Recompute>(std::move(made)));
      else s.add(std::move(made));
    };
    AttentionSpec spec = four_heads();
    spec.dropout = dropout;
    add("attention",
        std::make_unique<SelfAttention>(s.context(), s.unit("attention"), "attention", "attention", spec));
    if (s.setting().memory)
      add("cross", std::make_unique<CrossAttention>(s.context(), s.unit("cross"), "cross", "cross", spec));
    add("mlp", std::make_unique<Mlp>(s.context(), s.unit("mlp"), "mlp",
                                     MlpSpec{16, 24, Activation::gelu, false, true}));
  };
}

/// An encoder's end, and a decoder's reader of its memory.
void bridge(Subject& s) {
  Unit& unit = s.unit("bridge");
  auto embedding = std::make_unique<Embedding>(s.context(), s.unit("table"), unit, "bridge",
                                               EmbeddingSpec{s.setting().vocabulary, 16, 8, 0.1, 0.02});
  s.add(std::make_unique<Bridge>(
      s.context(), Norm(s.context(), unit, "norm", NormKind::layer, 16, 1e-5, true), std::move(embedding)));
  s.add(block(s, "cross",
              std::make_unique<CrossAttention>(s.context(), s.unit("cross"), "cross", "cross", four_heads()),
              0));
}

TEST(BlockGradients, OfAttentionAndMlp) { check_gradients({}, layer(0, false)); }

TEST(BlockGradients, ThroughDropoutWhoseMaskIsAFunction) { check_gradients({}, layer(0.25, false)); }

TEST(BlockGradients, OfADecodersLayer) {
  Setting setting;
  setting.memory = true;
  check_gradients(setting, layer(0.1, false));
}

TEST(BlockGradients, OfBlocksThatNormTheirSums) {
  check_gradients({}, layer<PostNormBlock>(0, false));
  Setting setting;
  setting.memory = true;
  check_gradients(setting, layer<PostNormBlock>(0.25, false));
}

TEST(PostNorm, IsTheNormOfTheSumOfInputAndBranch) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Setting setting;
    setting.dtype = dtype;
    Subject fused(setting, layer<PostNormBlock>(0.2, false));
    Subject apart(setting, layer<SumThenNorm>(0.2, false));
    EXPECT_EQ(fused.loss(), apart.loss());
    EXPECT_TRUE(fused.gradients() == apart.gradients()) << name_of(dtype);
  }
}

TEST(BlockGradients, OfTheBridgeBetweenEncoderAndDecoder) {
  Setting setting;
  setting.vocabulary = 64;
  check_gradients(setting, bridge);
}

TEST(BlockGradients, DifferInRoundingOnlyBetweenShards) {
  Setting setting;
  setting.memory = true;
  check_rounding(setting, layer(0.1, false));
  check_rounding(setting, layer<PostNormBlock>(0.1, false));
}

TEST(Recompute, GivesTheBitsOfThePlainBlock) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (int shards : {1, 2, 4})
      for (bool memory : {false, true})
        for (auto when : {Tape::WeightGradients::now, Tape::WeightGradients::later}) {
          Setting setting;
          setting.dtype = dtype;
          setting.shards = shards;
          setting.memory = memory;
          setting.weight_gradients = when;
          Subject plain(setting, layer(0.2, false)), recomputed(setting, layer(0.2, true));
          EXPECT_EQ(plain.loss(), recomputed.loss());
          EXPECT_TRUE(plain.gradients() == recomputed.gradients())
              << name_of(dtype) << ", " << shards << " shards" << (memory ? ", with a memory" : "");
          Subject post(setting, layer<PostNormBlock>(0.2, false)),
              post_again(setting, layer<PostNormBlock>(0.2, true));
          EXPECT_EQ(post.loss(), post_again.loss());
          EXPECT_TRUE(post.gradients() == post_again.gradients()) << name_of(dtype);
        }
}

/// A block whose backward has a mistake: its input's gradient with the wrong sign.
class Flipped final : public Layer {
 public:
  Flipped(const LayerContext& context, std::unique_ptr<Layer> layer)
      : context_(context), layer_(std::move(layer)) {}
  Boundary forward(Boundary in, Tape& tape) override { return layer_->forward(in, tape); }
  Boundary backward(Boundary dout, Tape& tape) override {
    const Boundary din = layer_->backward(dout, tape);
    for (std::int64_t i = 0; i < din.activation.count(); ++i) din.activation.as<double>()[i] *= -1;
    return din;
  }

 private:
  LayerContext context_;
  std::unique_ptr<Layer> layer_;
};

TEST(GradientCheck, FindsAFlippedSignInABlockAndNamesWhatItSpoils) {
  Subject subject({}, [](Subject& s) {
    for (const char* name : {"first", "second", "third"}) {
      auto made = block(s, name,
                        std::make_unique<Mlp>(s.context(), s.unit(name), "mlp",
                                              MlpSpec{16, 24, Activation::gelu, false, true}),
                        0);
      if (std::string(name) == "second") s.add(std::make_unique<Flipped>(s.context(), std::move(made)));
      else s.add(std::move(made));
    }
  });
  for (const auto& [name, error] : errors_of(subject, subject.gradients())) {
    const bool before_it = name.starts_with("first.") || name.starts_with("input.");
    EXPECT_EQ(error > 1e-7, before_it) << name << " is off by " << error;
  }
}

TEST(GradientCheck, FindsAFlippedSignOfAnyOneTensor) {
  Subject subject({}, layer(0, false));
  const Whole right = subject.gradients();
  for (const auto& [flipped, gradient] : right) {
    Whole wrong{{flipped, gradient}};
    for (double& g : wrong.at(flipped)) g = -g;
    EXPECT_GT(errors_of(subject, wrong).at(flipped), 1) << flipped;
  }
}

TEST(GradientCheck, FindsOneWrongElementAmongMany) {
  Subject subject({}, layer(0, false));
  Whole gradients = subject.gradients();
  gradients.at("mlp.mlp.up.weight")[100] *= 1.001;
  const auto errors = errors_of(subject, gradients);
  EXPECT_GT(errors.at("mlp.mlp.up.weight"), 1e-7);
  EXPECT_LE(errors.at("mlp.mlp.output.weight"), 1e-7);
}

}  // namespace
}  // namespace mindpipe::testing
