#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/cost_model.h"
#include "runtime/small_models.h"

using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;

namespace mindpipe {
namespace {

std::vector<ProductCall> products_of(Config config) {
  config = resolve(config);
  return CostModel(config, make_layout(config, {})).passes().products();
}

TEST(Products, OfAConfigurationAreListedForTuning) {
  Config config = gpt2_style();
  config.train.precision = Precision::bf16;
  const std::vector<ProductCall> products = products_of(config);
  const std::int64_t n = 2 * 24;  // tokens of a micro-batch
  using enum DType;
  using Kind = ProductCall::Kind;
  EXPECT_THAT(products,
              Contains(ProductCall{Kind::forward, bf16, bf16, Activation::none, bf16, {}, n, 48, 144}))
      << "queries, keys and values";
  EXPECT_THAT(products,
              Contains(ProductCall{Kind::forward, bf16, bf16, Activation::gelu, bf16, bf16, n, 48, 192}))
      << "the MLP's first";
  EXPECT_THAT(products,
              Contains(ProductCall{Kind::backward_input, bf16, bf16, Activation::gelu, {}, bf16, n, 192, 48}))
      << "the gradient behind its activation";
  EXPECT_THAT(products,
              Contains(ProductCall{Kind::backward_weight, bf16, f32, Activation::none, {}, {}, n, 48, 192}));
  EXPECT_THAT(products, Not(Contains(testing::Field(&ProductCall::operands, f32))));
}

TEST(Products, HaveTheShapesOfALogicalShard) {
  Config config = gpt2_style();
  config.reproducible.tensor = 2;
  const std::vector<ProductCall> products = products_of(config);
  EXPECT_THAT(
      products,
      Contains(ProductCall{
          ProductCall::Kind::forward, DType::f32, DType::f32, Activation::none, DType::f32, {}, 48, 48, 72}));
  EXPECT_THAT(products, Each(testing::Field(&ProductCall::operands, DType::f32)));
}

}  // namespace
}  // namespace mindpipe
