// thorough
#include <gtest/gtest.h>

#include <array>

#include "kernels/unit_models/unit_models.h"
#include "products_model.h"

/// The tile engine, at the edges of what it cuts a product into: tiles of 16, cells and chunks of 32, blocks
/// of 256 depths, passes of 1024 depths and 1024 rows, strips of 768 columns.
namespace mindpipe {
namespace {

using namespace testing_products;

/// The engine over its model, as each instruction set packs and ends it, or over the processor's own tiles.
struct TileEngine {
  std::string name;
  Isa isa;
  const ProductKernels* kernels;
  bool here;
};
std::vector<TileEngine> tile_engines() {
  std::vector<TileEngine> all;
  for (Isa isa : sets_with_models)
    all.push_back({std::string("model_") + name_of(isa), isa, &MINDPIPE_PICK_MODEL(isa, amx_model_kernels),
                   processor_has(isa)});
  all.push_back({"processor", Isa::avx512, &avx512::amx_kernels, processor_has(Isa::avx512_amx)});
  return all;
}
void PrintTo(const TileEngine& engine, std::ostream* to) { *to << engine.name; }

constexpr Form every_form[] = {Form::forward, Form::backward_input, Form::backward_weight};
constexpr Activation every_activation[] = {Activation::none, Activation::relu, Activation::gelu,
                                           Activation::silu, Activation::gelu_exact};

class TileProducts : public ::testing::TestWithParam<TileEngine> {
 protected:
  void SetUp() override {
    if (!GetParam().here) GTEST_SKIP() << "this processor cannot run it";
  }
  const ProductKernels& kernels() const { return *GetParam().kernels; }
  void multiply(const Product& product, int threads) const {
    testing_products::run(kernels(), product, threads);
  }

  void expect_definition(Form form, std::int64_t rows, std::int64_t cols, std::int64_t depth, bool bf16_out,
                         int threads, std::int64_t row_step = 1) const {
    Case given(form, rows, cols, depth, true, bf16_out);
    const Values old = given.c;
    multiply(given.product, threads);
    EXPECT_EQ(wrong_elements(given, old, Rule::tiles, row_step), 0)
        << "form " << static_cast<int>(form) << ", " << rows << " x " << cols << " x " << depth
        << (bf16_out ? " into bf16, " : " into f32, ") << threads << " threads";
  }
};

TEST_P(TileProducts, equal_their_definition_on_every_edge_of_tiles) {
  constexpr int edges[] = {1, 15, 16, 17, 31, 32, 33};
  for (Form form : every_form)
    for (int i = 0; i < 7; ++i)
      for (int j = 0; j < 7; ++j)
        expect_definition(form, edges[i], edges[j], edges[(i + j) % 7],
                          form != Form::backward_weight && (i + j) % 2, 1);
}

TEST_P(TileProducts, equal_their_definition_on_every_edge_of_blocks_and_passes_over_depth) {
  for (Form form : every_form)
    for (std::int64_t depth : {255, 256, 257, 288, 513, 1023, 1024, 1025, 2049})
      expect_definition(form, 34, 49, depth, form == Form::forward, static_cast<int>(1 + depth % 3));
}

TEST_P(TileProducts, equal_their_definition_in_passes_over_rows_and_depth) {
  for (Form form : {Form::forward, Form::backward_weight})
    expect_definition(form, 1061, 33, 1030, false, 1, 15);
  expect_definition(Form::forward, 3, 1061, 1030, false, 1);  // columns are the left factor's rows
}

TEST_P(TileProducts, equal_their_definition_in_strips_of_columns) {
  for (Form form : {Form::backward_input, Form::backward_weight}) {
    expect_definition(form, 35, 801, 31, false, 2);
    expect_definition(form, 33, 545, 1024, false, 1, 3);  // sixteen panels of such depth fill a slab
  }
  expect_definition(Form::forward, 545, 801, 8, true, 1, 3);
}

TEST_P(TileProducts, equal_their_definition_with_as_many_rows_as_change_places_and_one_more) {
  for (std::int64_t rows : {512, 513})
    for (bool bf16_out : {false, true}) expect_definition(Form::forward, rows, 65, 33, bf16_out, 1, 3);
}

TEST_P(TileProducts, have_the_same_bits_on_any_number_of_threads) {
  for (Form form : every_form) {  // a thread's last rows are a task of their own
    const std::int64_t rows = 1029, cols = 131, depth = 37;
    Case one(form, rows, cols, depth, true, false);
    const Values old = one.c;
    multiply(one.product, 1);
    EXPECT_EQ(wrong_elements(one, old, Rule::tiles, 37), 0);
    for (int threads : {2, 3}) {
      Case other(form, rows, cols, depth, true, false);
      multiply(other.product, threads);
      EXPECT_EQ(one.c.full, other.c.full)
          << "form " << static_cast<int>(form) << ", " << threads << " threads";
    }
  }
}

/// A factor's matrix with `stride` values to a row, of which those between rows are NaN, and so many of them
/// from its last row to the end of the memory that may be read.
struct Spread {
  FencedVector<std::uint16_t> memory;
  Spread(const Values& from, std::int64_t stride, std::int64_t behind) {
    memory.resize(static_cast<std::size_t>((from.rows - 1) * stride + from.cols + behind), 0x7fc0);
    for (std::int64_t i = 0; i < from.rows; ++i)
      std::copy_n(from.half.begin() + i * from.cols, from.cols, memory.begin() + i * stride);
  }
};

TEST_P(TileProducts, do_not_depend_on_where_factors_lie_and_read_nothing_else) {
  // What is read in place lies at multiples of 64 bytes with a stride that is one, but not of 1024.
  struct Layout {
    std::int64_t depth, stride, behind;
  };
  constexpr Layout layouts[] = {
      {96, 96, 0},     {96, 96, 1},     {96, 100, 0},    {96, 160, 0},   {96, 160, 2},
      {96, 512, 0},    {90, 96, 6},     {90, 96, 0},     {288, 320, 0},  {288, 1024, 0},
      {1056, 1056, 0}, {1056, 1120, 4}, {1050, 1056, 6}, {64, 4096, 32},
  };
  for (Form form : {Form::forward, Form::backward_input})
    for (const Layout& at : layouts) {
      Case given(form, 67, 70, at.depth, true, false);
      const Values old = given.c;
      const Spread a(given.a, at.stride, at.behind);
      given.product.a.data = a.memory.data();
      given.product.a.stride = at.stride;
      const Spread b(given.b, form == Form::forward ? at.stride : 75, at.behind);
      given.product.b.data = b.memory.data();
      given.product.b.stride = form == Form::forward ? at.stride : 75;
      multiply(given.product, 1);
      EXPECT_EQ(wrong_elements(given, old, Rule::tiles), 0)
          << "form " << static_cast<int>(form) << ", depth " << at.depth << ", stride " << at.stride << ", "
          << at.behind << " behind";
    }
}

TEST_P(TileProducts, end_as_products_in_f32_do) {
  for (Form form : {Form::forward, Form::backward_input})
    for (Activation activation : every_activation)
      for (bool bf16_out : {false, true})
        for (std::int64_t rows : {35, 515}) {  // odd columns: no row of c begins at a line of the cache
          Case given(form, rows, 65, 1, true, bf16_out, activation),
              same(form, rows, 65, 1, true, bf16_out, activation);  // of depth one both have the same sums
          multiply(given.product, 1);
          testing_products::run(MINDPIPE_PICK_KERNELS(GetParam().isa, product_kernels), same.product, 1);
          EXPECT_TRUE(given.c.half == same.c.half && given.c.full == same.c.full &&
                      given.before.half == same.before.half && given.before.full == same.before.full)
              << "form " << static_cast<int>(form) << ", activation " << static_cast<int>(activation)
              << (bf16_out ? ", bf16, " : ", f32, ") << rows << " rows";
        }
}

TEST_P(TileProducts, keep_nothing_and_add_no_bias_where_none_is_given) {
  for (bool bf16_out : {false, true}) {
    Case kept(Form::forward, 40, 64, 70, true, bf16_out, Activation::gelu),
        given(Form::forward, 40, 64, 70, true, bf16_out, Activation::gelu);
    kept.product.bias = given.product.bias = {};
    given.product.before = {};
    multiply(kept.product, 1);
    multiply(given.product, 1);
    EXPECT_TRUE(given.c.half == kept.c.half && given.c.full == kept.c.full);
    Case plain(Form::forward, 40, 64, 70, true, bf16_out);
    plain.product.bias = {};
    const Values old = plain.c;
    multiply(plain.product, 1);
    EXPECT_EQ(wrong_elements(plain, old, Rule::tiles), 0);
    EXPECT_TRUE(plain.c.half == kept.before.half && plain.c.full == kept.before.full);
  }
}

TEST_P(TileProducts, begin_with_old_values_whatever_the_type_and_the_end) {
  for (bool bf16_out : {false, true})
    for (bool biased : {false, true})
      for (std::int64_t depth : {40, 300}) {
        Case given(Form::forward, 67, 70, depth, true, bf16_out);
        given.product.accumulate = true;
        if (!biased) given.product.bias = {};
        const Values old = given.c;
        multiply(given.product, 1);
        EXPECT_EQ(wrong_elements(given, old, Rule::tiles), 0)
            << (bf16_out ? "bf16" : "f32") << (biased ? ", bias" : "") << ", depth " << depth;
      }
}

TEST_P(TileProducts, of_no_depth_are_old_values_or_zero) {
  Case weight(Form::backward_weight, 35, 33, 0, true, false);
  weight.c.full[3] = -0.0f;
  const Values old = weight.c;
  multiply(weight.product, 2);
  for (std::int64_t i = 0; i < 35 * 33; ++i) EXPECT_EQ(bits(weight.c.full[i]), bits(old.full[i]));
  for (bool bf16_out : {false, true}) {
    Case forward(Form::forward, 35, 33, 0, true, bf16_out, Activation::relu);
    multiply(forward.product, 2);
    for (std::int64_t i = 0; i < 35; ++i)
      for (std::int64_t j = 0; j < 33; ++j) {
        EXPECT_EQ(forward.before.at(i, j), forward.bias.at(j));
        EXPECT_EQ(forward.c.at(i, j), std::max(0.0f, forward.bias.at(j)));
      }
  }
}

TEST_P(TileProducts, hand_on_infinity_and_not_a_number_in_their_rows_and_columns_alone) {
  for (Form form : every_form)
    for (bool bf16_out : {false, true})
      for (std::int64_t rows : {50, 530}) {
        if (form == Form::backward_weight && bf16_out) continue;
        Case given(form, rows, 41, 300, true, bf16_out);
        const auto a = [&](std::int64_t i, std::int64_t p) {
          return form == Form::backward_weight ? p * given.a.cols + i : i * given.a.cols + p;
        };
        const auto b = [&](std::int64_t j, std::int64_t p) {
          return form == Form::forward ? j * given.b.cols + p : p * given.b.cols + j;
        };
        given.a.set(a(5, 299), NAN);
        given.a.set(a(35, 17), INFINITY);
        given.b.set(b(33, 2), -INFINITY);
        given.b.set(b(40, 257), NAN);
        given.b.set(b(7, 17), 0);  // times infinity
        given.a.set(a(9, 40), 3e38f);
        given.b.set(b(1, 40), 3e38f);  // a product beyond all numbers
        const Values old = given.c;
        multiply(given.product, 1);
        EXPECT_EQ(wrong_elements(given, old, Rule::tiles), 0);
        EXPECT_TRUE(std::isnan(given.c.at(5, 0)) && std::isnan(given.c.at(0, 40)));
        EXPECT_TRUE(std::isnan(given.c.at(35, 7)) && std::isfinite(given.c.at(0, 0)));
        EXPECT_TRUE(std::isinf(given.c.at(9, 1)));
      }
}

TEST_P(TileProducts, keep_a_no_number_whose_bits_would_round_up_to_a_number) {
  for (std::int64_t rows : {32, 530}) {
    Case given(Form::forward, rows, 64, 40, true, true, Activation::relu);
    const std::uint32_t all_ones = 0x7fffffff;
    Values bias(1, 64, false, 3);
    std::memcpy(&bias.full[20], &all_ones, 4);
    given.product.bias = bias.view();
    multiply(given.product, 1);
    for (std::int64_t j = 0; j < 64; ++j) {
      EXPECT_EQ(std::isnan(given.before.at(1, j)), j == 20);
      EXPECT_EQ(std::isnan(given.c.at(1, j)), j == 20);
    }
  }
}

TEST_P(TileProducts, of_fewer_rows_take_no_more_memory) {
  // A thread's tasks are parts of what its memory was asked for.
  const auto bytes = [&](std::int64_t rows, std::int64_t depth) {
    return kernels().workspace_bytes(rows, depth);
  };
  for (std::int64_t depth : {1024, 1025})
    for (std::int64_t rows = 2; rows < 1100; ++rows)
      EXPECT_GE(bytes(rows, depth), bytes(rows - 1, depth)) << rows << " rows";
  for (std::int64_t rows : {1, 40, 704, 1024})  // a packed strip, and all sums of a pass over rows
    EXPECT_GT(bytes(rows, 1025), (std::size_t{1} << 20) + static_cast<std::size_t>(rows) * 768 * 4);
}

INSTANTIATE_TEST_SUITE_P(Engines, TileProducts, ::testing::ValuesIn(tile_engines()),
                         [](const auto& engine) { return engine.param.name; });

}  // namespace
}  // namespace mindpipe
