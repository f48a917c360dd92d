#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "cuda/blas_lt.h"
#include "cuda/device/activation.h"
#include "cuda/product_key.h"
#include "cuda/tuned_table.h"
#include "open_library.h"
#include "plans/reserved_processors.h"

/// What stands between Backend's products and cuBLASLt, without a GPU: layouts, epilogues, alignments, the
/// table of algorithms.
using namespace mindpipe;
using namespace mindpipe::cuda;
using ::testing::HasSubstr;

namespace {

std::string complaint_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

/// Element (row, col) of op(matrix), read off memory as cuBLASLt does.
double element(const ColumnMatrix& matrix, const std::vector<double>& memory, std::int64_t row,
               std::int64_t col) {
  if (matrix.transposed) std::swap(row, col);
  return memory[static_cast<std::size_t>(col * matrix.leading + row)];
}

/// d = op(a) op(b), or d += it: the definition in cuBLASLt's documentation.
void multiply(const ProductLayout& layout, const std::vector<double>& a, const std::vector<double>& b,
              std::vector<double>& d) {
  const std::int64_t depth = layout.a.transposed ? layout.a.rows : layout.a.cols;
  ASSERT_EQ(depth, layout.b.transposed ? layout.b.cols : layout.b.rows);
  ASSERT_EQ(layout.d.rows, layout.a.transposed ? layout.a.cols : layout.a.rows);
  ASSERT_EQ(layout.d.cols, layout.b.transposed ? layout.b.rows : layout.b.cols);
  for (std::int64_t col = 0; col < layout.d.cols; ++col)
    for (std::int64_t row = 0; row < layout.d.rows; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < depth; ++i)
        sum += element(layout.a, a, row, i) * element(layout.b, b, i, col);
      double& to = d[static_cast<std::size_t>(col * layout.d.leading + row)];
      to = layout.accumulate ? to + sum : sum;
    }
}

std::vector<double> numbers(std::int64_t count, int seed) {
  std::vector<double> made;
  for (std::int64_t i = 0; i < count; ++i) made.push_back(static_cast<double>((i * 7 + seed) % 11 - 5));
  return made;
}

/// A matrix [rows, cols] of ours, element (i, j).
struct RowMajor {
  const std::vector<double>& memory;
  std::int64_t cols;
  double operator()(std::int64_t i, std::int64_t j) const {
    return memory[static_cast<std::size_t>(i * cols + j)];
  }
};

TEST(CudaProducts, TheLayoutsComputeOurProductsTransposed) {
  const std::int64_t n = 5, k = 3, m = 4;
  const auto x = numbers(n * k, 1), w = numbers(m * k, 2), dy = numbers(n * m, 3);
  const RowMajor at_x{x, k}, at_w{w, k}, at_dy{dy, m};
  auto y = numbers(n * m, 4), dx = numbers(n * k, 5), dw = numbers(m * k, 6);
  auto first_dw = dw;
  const auto dw_before = dw;
  multiply(layout_of({ProductKind::forward, DType::f32, DType::f32, Epilogue::none, n, k, m}), w, x, y);
  multiply(layout_of({ProductKind::backward_input, DType::f32, DType::f32, Epilogue::none, n, k, m}), w, dy,
           dx);
  multiply(layout_of({ProductKind::backward_weight, DType::f32, DType::f32, Epilogue::none, n, k, m}), x, dy,
           dw);
  multiply(layout_of({ProductKind::first_weight, DType::f32, DType::f32, Epilogue::none, n, k, m}), x, dy,
           first_dw);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += at_x(i, p) * at_w(j, p);
      EXPECT_EQ((RowMajor{y, m}(i, j)), sum);
    }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t p = 0; p < k; ++p) {
      double sum = 0;
      for (std::int64_t j = 0; j < m; ++j) sum += at_dy(i, j) * at_w(j, p);
      EXPECT_EQ((RowMajor{dx, k}(i, p)), sum);
    }
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t p = 0; p < k; ++p) {
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += at_dy(i, j) * at_x(i, p);
      EXPECT_EQ((RowMajor{first_dw, k}(j, p)), sum);
      EXPECT_EQ((RowMajor{dw, k}(j, p)), sum + (RowMajor{dw_before, k}(j, p)));
    }
}

TEST(CudaProducts, AnAlignmentHoldsForEveryShardOfATensor) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (std::int64_t elements : {1, 3, 4, 6, 8, 12, 24, 768, 5 * 7, 1024 * 768}) {
      const int alignment = alignment_of(elements, dtype);
      for (std::int64_t shard = 0; shard < 9; ++shard)
        EXPECT_EQ(shard * elements * static_cast<std::int64_t>(bytes_of(dtype)) % alignment, 0);
      EXPECT_TRUE(alignment == 16 ||
                  elements * static_cast<std::int64_t>(bytes_of(dtype)) % (2 * alignment) != 0)
          << "it could be wider";
    }
  EXPECT_EQ(alignment_of(3, DType::bf16), 2);
  EXPECT_EQ(alignment_of(768 * 768, DType::bf16), 16);
}

TEST(CudaProducts, OnlyWhatTheLibraryComputesInF32IsFused) {
  const auto forward = [](Activation a, std::optional<DType> bias, std::optional<DType> before, DType y,
                          std::int64_t m = 64) {
    return epilogue_of(
        {ProductKind::forward, y == DType::f64 ? y : DType::bf16, y, a, bias, before, 32, 16, m});
  };
  const auto backward = [](Activation a, std::optional<DType> before, DType dx, std::int64_t k) {
    return epilogue_of({ProductKind::backward_input, DType::bf16, dx, a, {}, before, 32, k, 16});
  };
  using enum DType;
  EXPECT_EQ(forward(Activation::none, {}, {}, bf16), Epilogue::none);
  EXPECT_EQ(forward(Activation::none, bf16, {}, bf16), Epilogue::bias);
  EXPECT_EQ(forward(Activation::gelu, bf16, bf16, bf16), Epilogue::gelu_bias_before);
  EXPECT_EQ(forward(Activation::gelu, {}, bf16, bf16), Epilogue::gelu_before);
  EXPECT_EQ(forward(Activation::gelu, bf16, {}, bf16), Epilogue::gelu_bias);
  EXPECT_EQ(forward(Activation::relu, f32, {}, f32), Epilogue::relu_bias);
  EXPECT_EQ(forward(Activation::silu, bf16, bf16, bf16), std::nullopt) << "the library has no SiLU";
  EXPECT_EQ(forward(Activation::gelu_exact, bf16, bf16, bf16), std::nullopt)
      << "the library's GELU is the tanh form";
  EXPECT_EQ(forward(Activation::relu, bf16, bf16, bf16), std::nullopt)
      << "the library keeps a mask, not what went in";
  EXPECT_EQ(forward(Activation::none, f32, {}, bf16), std::nullopt) << "its bias has the result's dtype";
  EXPECT_EQ(forward(Activation::gelu, bf16, bf16, bf16, 63), std::nullopt)
      << "its leading dimension is a multiple of 8";
  EXPECT_EQ(forward(Activation::gelu, bf16, {}, bf16, 63), Epilogue::gelu_bias);
  EXPECT_EQ(backward(Activation::none, {}, bf16, 63), Epilogue::none);
  EXPECT_EQ(backward(Activation::gelu, bf16, bf16, 64), Epilogue::gelu_backward);
  EXPECT_EQ(backward(Activation::gelu, bf16, f32, 64), std::nullopt);
  EXPECT_EQ(backward(Activation::silu, bf16, bf16, 64), std::nullopt);
  EXPECT_EQ(backward(Activation::gelu_exact, bf16, bf16, 64), std::nullopt);
  EXPECT_EQ(forward(Activation::none, {}, {}, f64), Epilogue::none);
  EXPECT_EQ(forward(Activation::none, f64, {}, f64), std::nullopt) << "in f64 the library gives sums";
}

TEST(CudaProducts, SumsThatNeedAnotherPassFitIntoTheirMemory) {
  for (std::int64_t cols : {1, 100, 768, 50304, 131072, 200000, 1000000, 9000000}) {
    const std::int64_t rows = rows_at_once(cols, 32 << 20);
    EXPECT_GE(rows, 1);
    EXPECT_TRUE(rows == 1 || rows * cols * 4 <= 32 << 20) << cols;
    EXPECT_TRUE(cols > 131072 || rows % 64 == 0) << cols;
  }
}

TEST(CudaProducts, AKeyIsWrittenAndReadAgain) {
  const ProductKey key{
      ProductKind::backward_input, DType::bf16, DType::bf16, Epilogue::gelu_backward, 8192, 768, 3072};
  EXPECT_EQ(to_string(key), "backward_input bf16 bf16 gelu_backward 8192 768 3072");
  EXPECT_EQ(product_key_of(to_string(key)), key);
  ProductKey on_fewer = key;
  on_fewer.processors = 116;
  EXPECT_EQ(to_string(on_fewer), "backward_input bf16 bf16 gelu_backward 8192 768 3072 on 116");
  EXPECT_EQ(product_key_of(to_string(on_fewer)), on_fewer);
  EXPECT_NE(on_fewer, key);
  const ProductKey first{ProductKind::first_weight, DType::bf16, DType::f32, Epilogue::none, 8192, 768, 3072};
  EXPECT_EQ(product_key_of("first_weight bf16 f32 none 8192 768 3072"), first);
  for (const char* wrong :
       {"", "forward bf16 bf16 none 1 2", "forward bf16 bf16 none 1 2 3 4", "backward bf16 bf16 none 1 2 3",
        "forward i32 bf16 none 1 2 3", "forward bf16 bf16 tanh 1 2 3", "forward bf16 bf16 none 0 2 3",
        "forward bf16 bf16 none a 2 3", "forward bf16 bf16 none 1 2 3 on",
        "forward bf16 bf16 none 1 2 3 on 0", "forward bf16 bf16 none 1 2 3 at 4",
        "forward bf16 bf16 none 1 2 3 on 4 5"})
    EXPECT_EQ(product_key_of(wrong), std::nullopt) << wrong;
}

TEST(CudaProducts, AReserveOfMultiprocessorsIsPartOfEveryKey) {
  const ProductCall call{
      ProductKind::forward, DType::bf16, DType::bf16, Activation::none, {}, {}, 64, 32, 16};
  EXPECT_EQ(processors_left(132, 0), 0) << "the library's own choice";
  EXPECT_EQ(processors_left(132, 16), 116);
  EXPECT_EQ(fused_key(call, 116)->processors, 116);
  EXPECT_EQ(sums_key(call, 8, 116).processors, 116);
  for (const int reserved : {132, 133})
    EXPECT_THAT(
        complaint_of([&] { processors_left(132, reserved); }),
        HasSubstr(fmt::format("device.reserved_multiprocessors is {}, and the GPU has 132", reserved)));
}

TunedTable small_table() {
  TunedTable table{"NVIDIA H200", 130100, {}};
  table.algorithms[{ProductKind::forward, DType::bf16, DType::bf16, Epilogue::bias, 64, 32, 16}] = {
      1, 2, 3, 0xfedcba9876543210, 5, 6, 7, 8};
  table.algorithms[{ProductKind::backward_weight, DType::bf16, DType::f32, Epilogue::none, 64, 32, 16}] = {
      9, 0, 0, 0, 0, 0, 0, ~0ull};
  return table;
}

TEST(CudaProducts, ATableIsWrittenAndReadAgain) {
  const TunedTable table = small_table(), again = read_tuned_table(to_string(table) + "\n# a remark\n", "t");
  EXPECT_EQ(again.gpu, table.gpu);
  EXPECT_EQ(again.library, table.library);
  EXPECT_EQ(again.algorithms, table.algorithms);
  const ProductKey key = table.algorithms.begin()->first;
  ASSERT_NE(again.find(key), nullptr);
  EXPECT_EQ((*again.find(key))[3], 0xfedcba9876543210);
  EXPECT_EQ(again.find({ProductKind::forward, DType::f32, DType::f32, Epilogue::bias, 64, 32, 16}), nullptr);
}

TEST(CudaProducts, ATableThatIsNoneIsRefusedWithItsLine) {
  const std::string
      head = "mindpipe-products 1\ngpu X\nlibrary 1\n",
      words =
          " : 0000000000000001 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
          "0000000000000000 0000000000000000 0000000000000000\n",
      line = "forward bf16 bf16 none 1 2 3" + words;
  const auto complaint = [](const std::string& text) {
    return complaint_of([&] { read_tuned_table(text, "table.txt"); });
  };
  EXPECT_EQ(complaint(head + line), "no complaint");
  EXPECT_THAT(
      complaint("<html>\n"),
      HasSubstr("device.kernels: table.txt, line 1: 'mindpipe-products 1' is expected, not '<html>'; write "
                "it anew with mindpipe-train doctor --tune"));
  EXPECT_THAT(complaint(""), HasSubstr("the table is cut off"));
  EXPECT_THAT(complaint("mindpipe-products 1\nlibrary 3\n"), HasSubstr("line 2: 'gpu ...' is expected"));
  EXPECT_THAT(complaint("mindpipe-products 1\ngpu X\nlibrary new\n"),
              HasSubstr("line 3: 'new' is no version"));
  EXPECT_THAT(complaint(head + "forward bf16\n"), HasSubstr("line 4: 'forward bf16' names no product"));
  EXPECT_THAT(complaint(head + "forward bf16 bf16 none 1 2 3 : 01\n"),
              HasSubstr("eight words of sixteen hexadecimal digits"));
  EXPECT_THAT(complaint(head + line + line),
              HasSubstr("line 5: 'forward bf16 bf16 none 1 2 3' stands there twice"));
}

TEST(CudaProducts, ATableOfAnotherMachineIsRefused) {
  require_fit(small_table(), "t", "NVIDIA H200", 130100, 0);
  EXPECT_THAT(
      complaint_of([] { require_fit(small_table(), "t", "NVIDIA A100", 130100, 0); }),
      HasSubstr("t was made on an NVIDIA H200 with cuBLASLt 130100, this is an NVIDIA A100 with 130100"));
  EXPECT_THAT(complaint_of([] { require_fit(small_table(), "t", "NVIDIA H200", 130200, 0); }),
              HasSubstr("this is an NVIDIA H200 with 130200"));
  EXPECT_THAT(complaint_of([] { require_fit(small_table(), "t", "NVIDIA H200", 130100, 116); }),
              HasSubstr("64 32 16' of t is computed on all multiprocessors, and here products are on 116 "
                        "multiprocessors (device.reserved_multiprocessors)"));
}

TEST(CudaProducts, ALibraryThatIsNotThereIsNamed) {
  EXPECT_THAT(complaint_of([] { symbol_of("libcublasLt.so.0", "cublasLtCreate", "products on a GPU"); }),
              HasSubstr("cuda: libcublasLt.so.0 cannot be opened"));
  EXPECT_THAT(complaint_of([] { symbol_of("libm.so.6", "cublasLtCreate", "products on a GPU"); }),
              HasSubstr("libm.so.6 has no cublasLtCreate"));
}

TEST(CudaProducts, ActivationsAreThoseOfTheProcessor) {
  const double root = std::sqrt(2 / std::acos(-1.0));
  for (double x = -40; x <= 40; x += 0.37) {
    const double gelu = 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
    const double silu = x / (1 + std::exp(-x));
    EXPECT_NEAR(activated(Activation::gelu, x), gelu, 1e-13 * std::max(1.0, std::abs(x)));
    EXPECT_NEAR(activated(Activation::silu, x), silu, 1e-13 * std::max(1.0, std::abs(x)));
    EXPECT_NEAR(activated(Activation::gelu_exact, x), 0.5 * x * std::erfc(-x / std::sqrt(2.0)),
                1e-14 * std::max(1.0, std::abs(x)));
    EXPECT_EQ(activated(Activation::relu, x), x < 0 ? 0 : x);
    EXPECT_EQ(activated(Activation::none, x), x);
    for (Activation activation : {Activation::gelu, Activation::silu, Activation::gelu_exact}) {
      const double step = 1e-6,
                   slope = (activated(activation, x + step) - activated(activation, x - step)) / (2 * step);
      EXPECT_NEAR(derivative_at(activation, x), slope, 1e-7) << x;
      EXPECT_NEAR(static_cast<double>(derivative_at(activation, static_cast<float>(x))),
                  derivative_at(activation, x), 3e-6)
          << x;
    }
  }
  for (Activation activation :
       {Activation::gelu, Activation::silu, Activation::relu, Activation::gelu_exact}) {
    EXPECT_EQ(derivative_at(activation, INFINITY), 1);
    EXPECT_EQ(derivative_at(activation, -INFINITY), 0);
  }
}

}  // namespace
