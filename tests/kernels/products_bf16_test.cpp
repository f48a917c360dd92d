#include <gtest/gtest.h>

#include <array>

#include "kernels/unit_models/unit_models.h"
#include "products_model.h"

namespace mindpipe {
namespace {

using namespace testing_products;

/// An engine over the model of its unit, packed by each instruction set, or over the processor's own unit.
struct Engine {
  std::string name;
  Rule rule;
  Isa isa;
  const ProductKernels* kernels;
  std::string lacking;  ///< what this processor has not, "" where it has all
};
std::vector<Engine> engines() {
  std::vector<Engine> all;
  for (Isa isa : sets_with_models) {
    const std::string set = name_of(isa), lacking = processor_has(isa) ? "" : set;
    all.push_back(
        {"pairs_model_" + set, Rule::pairs, isa, &MINDPIPE_PICK_MODEL(isa, pair_model_kernels), lacking});
    all.push_back(
        {"tiles_model_" + set, Rule::tiles, isa, &MINDPIPE_PICK_MODEL(isa, amx_model_kernels), lacking});
  }
  all.push_back({"pairs", Rule::pairs, Isa::avx512, &avx512::pair_kernels,
                 processor_has(Isa::avx512_bf16) ? "" : "products of bf16 pairs"});
  all.push_back({"tiles", Rule::tiles, Isa::avx512, &avx512::amx_kernels,
                 processor_has(Isa::avx512_amx) ? "" : "AMX tiles"});
  return all;
}
void PrintTo(const Engine& engine, std::ostream* to) { *to << engine.name; }

class Bf16Products : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    if (!GetParam().lacking.empty()) GTEST_SKIP() << "this processor has no " << GetParam().lacking;
  }
  const ProductKernels& kernels() const { return *GetParam().kernels; }
  Rule rule() const { return GetParam().rule; }
};

TEST_P(Bf16Products, equal_their_definition_bit_for_bit) {
  const std::array<std::array<std::int64_t, 3>, 12> sizes{{{1, 1, 1},
                                                           {3, 64, 1050},
                                                           {4, 130, 63},
                                                           {2, 64, 31},
                                                           {1, 96, 545},
                                                           {1, 70, 300},
                                                           {17, 33, 31},
                                                           {32, 32, 64},
                                                           {50, 20, 545},
                                                           {7, 47, 1031},
                                                           {31, 1061, 18},
                                                           {2, 15, 0}}};
  for (Form form : {Form::forward, Form::backward_input, Form::backward_weight})
    for (const auto& [rows, cols, depth] : sizes)
      for (bool bf16_out : {false, true}) {
        if (form == Form::backward_weight && bf16_out) continue;
        Case given(form, rows, cols, depth, true, bf16_out);
        const Values old = given.c;
        run(kernels(), given.product, static_cast<int>(1 + (rows + cols) % 3));
        EXPECT_EQ(wrong_elements(given, old, rule()), 0)
            << "form " << static_cast<int>(form) << ", " << rows << " x " << cols << " x " << depth
            << (bf16_out ? " into bf16" : " into f32");
      }
}

TEST_P(Bf16Products, have_the_same_bits_on_any_number_of_threads_and_in_passes_of_many_rows) {
  for (Form form : {Form::forward, Form::backward_weight}) {
    const std::int64_t rows = 1061, cols = 35, depth = 70;
    Case one(form, rows, cols, depth, true, false), other(form, rows, cols, depth, true, false);
    run(kernels(), one.product, 1);
    run(kernels(), other.product, 3);
    EXPECT_EQ(one.c.full, other.c.full);
    const std::int64_t i = 1043, j = 34;
    const float old = Values(rows, cols, false, 5).at(i, j);
    EXPECT_EQ(bits(one.c.at(i, j)),
              bits(one.sum(i, j, rule(), old) + (form == Form::forward ? one.bias.at(j) : 0.0f)));
  }
}

TEST_P(Bf16Products, count_denormal_numbers_as_zero) {
  Case given(Form::forward, 3, 5, 40, true, false);
  given.product.bias = {};
  for (std::int64_t p = 0; p < 40; ++p) given.a.half[p] = 0x0070;  // below 2^-126
  for (std::int64_t p = 40; p < 80; ++p)
    given.a.half[p] = 0x0100;  // 2^-125, whose products with 2^-9 are too small
  for (std::int64_t p = 0; p < 40; ++p) given.b.half[p] = 0x3b00;
  run(kernels(), given.product, 1);
  for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(given.c.at(0, j), 0.0f);
  EXPECT_EQ(given.c.at(1, 0), 0.0f);
  EXPECT_NE(given.c.at(2, 0), 0.0f);
}

TEST_P(Bf16Products, end_as_the_other_products_do) {
  for (Activation activation :
       {Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact}) {
    Case given(Form::forward, 35, 41, 1, true, true, activation),
        same = given;  // of depth one both engines have the same sums
    same.product.a.data = same.a.data();
    same.product.b.data = same.b.data();
    same.product.bias = same.bias.view();
    same.product.c = same.c.view();
    same.product.before = same.before.view();
    run(kernels(), given.product, 2);
    run(MINDPIPE_PICK_KERNELS(GetParam().isa, product_kernels), same.product, 1);
    EXPECT_EQ(given.c.half, same.c.half);
    EXPECT_EQ(given.before.half, same.before.half);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, Bf16Products, ::testing::ValuesIn(engines()),
                         [](const auto& engine) { return engine.param.name; });

}  // namespace
}  // namespace mindpipe
