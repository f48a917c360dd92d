#include "layers/attention.h"

#include "adapters.h"
#include "gradient_check.h"

namespace mindpipe::testing {
namespace {

Subject::Build self_attention(const AttentionSpec& spec) {
  return [=](Subject& s) {
    s.add(std::make_unique<BranchLayer>(
        s.context(),
        std::make_unique<SelfAttention>(s.context(), s.unit("unit"), "attention", "path", spec)));
  };
}

Subject::Build cross_attention(const AttentionSpec& spec) {
  return [=](Subject& s) {
    s.add(std::make_unique<BranchLayer>(
        s.context(), std::make_unique<CrossAttention>(s.context(), s.unit("unit"), "cross", "path", spec)));
  };
}

TEST(SelfAttentionGradients, OfCausalHeads) { check_gradients({}, self_attention(four_heads())); }

TEST(SelfAttentionGradients, OfHeadsWithBiases) {
  AttentionSpec spec = four_heads();
  spec.bias = true;
  // A softmax does not feel what is added to all its logits.
  Setting setting;
  setting.without_gradient = {"unit.attention.k.bias"};
  check_gradients(setting, self_attention(spec));
}

TEST(SelfAttentionGradients, OfHeadsWithRotaryPositions) {
  AttentionSpec spec = four_heads();
  spec.rotary = spec.bias = true;
  check_gradients({}, self_attention(spec));
}

TEST(SelfAttentionGradients, OfHeadsThatShareKeysAndValues) {
  AttentionSpec spec = four_heads();
  spec.heads = 8;
  spec.rotary = true;
  check_gradients({}, self_attention(spec));
}

TEST(SelfAttentionGradients, OfAnEncoderWithPadding) {
  AttentionSpec spec = four_heads();
  spec.causal = false;
  spec.key_lengths = field::source_lengths;
  Setting setting;
  setting.sources = true;
  check_gradients(setting, self_attention(spec));
}

TEST(SelfAttentionGradients, OfRowsPaddedUpToTheShards) {
  AttentionSpec spec = four_heads();
  spec.causal = false;
  spec.key_rows = 5;
  check_gradients({}, self_attention(spec));
}

TEST(CrossAttentionGradients, OfAMemoryPaddedUpToTheShards) {
  AttentionSpec spec = four_heads();
  spec.key_rows = 5;
  Setting setting;
  setting.memory = true;
  check_gradients(setting, cross_attention(spec));
}

TEST(SelfAttention, RowsPaddedUpChangeNoBitOfTheOthers) {
  AttentionSpec spec = four_heads();
  spec.causal = false;
  spec.bias = true;
  Setting plain, padded;
  plain.samples = padded.samples = 1;
  plain.rows = spec.key_rows = padded.counted_rows = 5;
  padded.rows = 8;
  for (DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (int shards : {1, 2, 4}) {
      plain.dtype = padded.dtype = dtype;
      plain.shards = padded.shards = shards;
      Subject without(plain, self_attention(spec)), with(padded, self_attention(spec));
      EXPECT_EQ(without.loss(), with.loss());
      Whole expected = without.gradients(), got = with.gradients();
      std::vector<double>& x = got.at("input.activation");
      EXPECT_EQ(std::vector(x.begin() + 5 * 16, x.end()), std::vector<double>(3 * 16)) << "what nobody sees";
      x.resize(5 * 16);
      EXPECT_TRUE(got == expected) << name_of(dtype) << ", " << shards << " shards";
    }
}

TEST(SelfAttentionGradients, ThroughDropoutOfTheProbabilities) {
  AttentionSpec spec = four_heads();
  spec.dropout = 0.2;
  check_gradients({}, self_attention(spec));
}

TEST(SelfAttentionGradients, DifferInRoundingOnlyBetweenShards) {
  AttentionSpec spec = four_heads();
  spec.heads = 8;
  spec.rotary = true;
  check_rounding({}, self_attention(spec));
}

TEST(CrossAttentionGradients, OfQueriesKeysValuesAndTheMemory) {
  Setting setting;
  setting.memory = true;
  check_gradients(setting, cross_attention(four_heads()));
}

TEST(CrossAttentionGradients, OfPaddedMemoriesWithBiasesAndDropout) {
  AttentionSpec spec = four_heads();
  spec.bias = true;
  spec.dropout = 0.2;
  spec.key_lengths = field::source_lengths;
  Setting setting;
  setting.memory = setting.sources = true;
  setting.samples = 4;  // sources of 5, 3, 1 and no tokens
  setting.without_gradient = {"unit.cross.k.bias"};
  check_gradients(setting, cross_attention(spec));
}

TEST(CrossAttentionGradients, OfTwoReadersAddUpInTheMemory) {
  Setting setting;
  setting.memory = true;
  check_gradients(setting, [](Subject& s) {
    for (const char* name : {"first", "second"})
      s.add(std::make_unique<BranchLayer>(
          s.context(),
          std::make_unique<CrossAttention>(s.context(), s.unit(name), "cross", name, four_heads())));
  });
}

TEST(CrossAttentionGradients, DifferInRoundingOnlyBetweenShards) {
  Setting setting;
  setting.memory = true;
  check_rounding(setting, cross_attention(four_heads()));
}

}  // namespace
}  // namespace mindpipe::testing
