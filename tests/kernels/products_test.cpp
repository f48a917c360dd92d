#include "cpu/products.h"

#include <gtest/gtest.h>

#include <array>

#include "products_model.h"

namespace mindpipe {
namespace {

using namespace testing_products;

void run(Isa isa, const Product& product, int threads) {
  testing_products::run(MINDPIPE_PICK_KERNELS(isa, product_kernels), product, threads);
}

class Products : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!processor_has(GetParam())) GTEST_SKIP() << "this processor has no " << name_of(GetParam());
  }
  Rule rule() const { return GetParam() == Isa::baseline ? Rule::separate : Rule::fused; }
};

TEST_P(Products, equal_their_definition_bit_for_bit) {
  constexpr std::int64_t sizes[][3] = {{1, 1, 1},     {1, 70, 300},  {3, 17, 5},    {14, 32, 256},
                                       {29, 33, 257}, {7, 47, 770},  {31, 530, 18}, {45, 96, 512},
                                       {2, 15, 0},    {4, 100, 523}, {2, 64, 31}};
  for (Form form : {Form::forward, Form::backward_input, Form::backward_weight})
    for (const auto& [rows, cols, depth] : sizes)
      for (int types = 0; types < 3; ++types) {  // f32; bf16; bf16 into f32
        if (form == Form::backward_weight && types == 1) continue;
        Case given(form, rows, cols, depth, types > 0, types == 1);
        const Values old = given.c;
        const int threads = static_cast<int>(1 + (rows + cols) % 3);
        run(GetParam(), given.product, threads);
        int wrong = 0;
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < cols; ++j) {
            float want = given.sum(i, j, rule(), old.at(i, j));
            if (form == Form::forward) want += given.bias.at(j);
            if (given.c.bf16) want = from_bf16(to_bf16(want));
            wrong += bits(want) != bits(given.c.at(i, j));
          }
        EXPECT_EQ(wrong, 0) << "form " << static_cast<int>(form) << ", " << rows << " x " << cols << " x "
                            << depth << ", types " << types << ", " << threads << " threads";
      }
}

TEST_P(Products, have_the_same_bits_on_any_number_of_threads_and_in_passes_of_many_rows) {
  for (Form form : {Form::forward, Form::backward_input, Form::backward_weight}) {
    Case one(form, 2061, 67, 290, false, false), other(form, 2061, 67, 290, false, false);
    run(GetParam(), one.product, 1);
    for (int threads : {2, 3, 5}) {
      other.c = Values(2061, 67, false, 5);
      other.product.c = other.c.view();
      run(GetParam(), other.product, threads);
      EXPECT_EQ(one.c.full, other.c.full) << threads << " threads";
    }
    const std::int64_t i = 2043, j = 66;
    EXPECT_EQ(bits(one.c.at(i, j)), bits(one.sum(i, j, rule(), Values(2061, 67, false, 5).at(i, j)) +
                                         (form == Form::forward ? one.bias.at(j) : 0.0f)));
  }
}

TEST_P(Products, write_what_is_too_large_for_the_caches_whole) {
  const std::int64_t rows = 65, cols = 131088;  // 34 MB in lines of the cache; the last tile is half as wide
  Case given(Form::forward, rows, cols, 2, false, false);
  run(GetParam(), given.product, 2);
  int wrong = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      wrong += bits(given.c.at(i, j)) != bits(given.sum(i, j, rule(), 0) + given.bias.at(j));
  EXPECT_EQ(wrong, 0);
}

TEST_P(Products, give_a_tile_alone_the_bits_that_it_has_inside_the_whole) {
  const std::int64_t rows = 61, cols = 103, depth = 523;
  for (Form form : {Form::forward, Form::backward_input, Form::backward_weight}) {
    Case whole(form, rows, cols, depth, false, false,
               form == Form::backward_weight ? Activation::none : Activation::gelu);
    Values inside = whole.c, inside_before = whole.before;
    Product product = whole.product;
    product.c = inside.view();
    if (product.before.data) product.before = inside_before.view();
    run(GetParam(), product, 2);
    for (const auto& [first_row, last_row, first_col, last_col] :
         {std::array{0, 1, 0, 103}, std::array{5, 19, 31, 64}, std::array{60, 61, 102, 103},
          std::array{13, 50, 1, 99}}) {
      const std::int64_t r = last_row - first_row, c = last_col - first_col;
      Case alone = whole;
      alone.c = Values(r, c, false, 9);
      alone.before = Values(r, c, false, 9);
      for (std::int64_t i = 0; i < r; ++i)
        for (std::int64_t j = 0; j < c; ++j) {
          alone.c.full[i * c + j] = whole.c.at(first_row + i, first_col + j);
          alone.before.full[i * c + j] = whole.before.at(first_row + i, first_col + j);
        }
      alone.product.rows = r;
      alone.product.cols = c;
      alone.product.a.data =
          alone.a.full.data() + first_row * (alone.product.a.depth_first ? 1 : alone.product.a.stride);
      alone.product.b.data =
          alone.b.full.data() + first_col * (alone.product.b.depth_first ? 1 : alone.product.b.stride);
      alone.product.c = alone.c.view();
      if (alone.product.bias.data) alone.product.bias.data = alone.bias.full.data() + first_col;
      if (alone.product.before.data) alone.product.before = alone.before.view();
      run(GetParam(), alone.product, 1);
      int wrong = 0;
      for (std::int64_t i = 0; i < r; ++i)
        for (std::int64_t j = 0; j < c; ++j) {
          wrong += bits(alone.c.at(i, j)) != bits(inside.at(first_row + i, first_col + j));
          wrong += bits(alone.before.at(i, j)) != bits(inside_before.at(first_row + i, first_col + j));
        }
      EXPECT_EQ(wrong, 0) << "form " << static_cast<int>(form) << ", rows " << first_row << " to "
                          << last_row;
    }
  }
}

double curve_of(Activation activation, double x) {
  if (activation == Activation::relu) return x < 0 ? 0 : x;
  if (activation == Activation::silu) return x / (1 + std::exp(-x));
  if (activation == Activation::gelu_exact) return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  return activation == Activation::gelu
             ? 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))
             : x;
}

TEST_P(Products, activate_the_f32_value_and_keep_what_went_in) {
  for (Activation activation : {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact})
    for (bool bf16 : {false, true}) {
      Case given(Form::forward, 19, 41, 9, bf16, bf16, activation);
      run(GetParam(), given.product, 1);
      for (std::int64_t i = 0; i < 19; ++i)
        for (std::int64_t j = 0; j < 41; ++j) {
          const float z = given.sum(i, j, rule(), 0) + given.bias.at(j);
          EXPECT_EQ(bits(given.before.at(i, j)), bits(bf16 ? from_bf16(to_bf16(z)) : z));
          const double want = curve_of(activation, z);
          EXPECT_NEAR(given.c.at(i, j), want, std::abs(want) * (bf16 ? 0x1p-8 : 0x1p-20) + 1e-7);
        }
    }
}

TEST_P(Products, multiply_the_input_gradient_by_the_slope_of_the_activation) {
  for (Activation activation :
       {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact}) {
    Case given(Form::backward_input, 19, 41, 9, false, false, activation);
    run(GetParam(), given.product, 1);
    for (std::int64_t i = 0; i < 19; ++i)
      for (std::int64_t j = 0; j < 41; ++j) {
        const double x = given.before.at(i, j), h = 1e-5;
        const double want = given.sum(i, j, rule(), 0) *
                            (curve_of(activation, x + h) - curve_of(activation, x - h)) / (2 * h);
        EXPECT_NEAR(given.c.at(i, j), want, std::abs(want) * 1e-5 + 1e-5) << x;
      }
  }
}

TEST_P(Products, keep_not_a_number_and_only_in_its_row) {
  for (bool bf16 : {false, true}) {
    Case given(Form::forward, 16, 33, 40, bf16, bf16, Activation::gelu);
    given.a.set(5 * 40 + 3, NAN);
    run(GetParam(), given.product, 1);
    for (std::int64_t i = 0; i < 16; ++i)
      for (std::int64_t j = 0; j < 33; ++j) EXPECT_EQ(std::isnan(given.c.at(i, j)), i == 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, Products, ::testing::Values(Isa::baseline, Isa::avx2, Isa::avx512),
                         [](const auto& set) { return std::string(name_of(set.param)); });

}  // namespace
}  // namespace mindpipe
