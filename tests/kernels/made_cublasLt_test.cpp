#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "cuda/product_library.h"
#include "device_stream.h"
#include "kernels/made_cublasLt/made_cublasLt.h"
#include "kernels/operand.h"

// Products of the GPU backend, over a library that stands in for cuBLASLt, checks what its documentation
// demands and computes literally.
namespace mindpipe::cuda {
namespace {

using mindpipe::testing::Operand;
using ::testing::HasSubstr;

/// Elements by which an operand lies behind an aligned address, so that it is aligned no more than it has to.
std::size_t skew(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(alignment_of(elements, dtype)) / bytes_of(dtype);
}
Operand placed(const Shape& shape, DType dtype, const std::string& name) {
  return Operand::random(shape, dtype, name, 1, skew(shape.count(), dtype));
}

/// A product with operands of its own, in rows as the layers have them.
struct Asked {
  explicit Asked(const ProductKey& k)
      : key(k),
        layout(layout_of(k)),
        a(placed({layout.a.cols, layout.a.rows}, k.operands, "a")),
        b(placed({layout.b.cols, layout.b.rows}, k.operands, "b")),
        d(placed({layout.d.cols, layout.d.rows}, k.result, "d")),
        before(placed({layout.d.cols, layout.d.rows}, k.result, "before")),
        bias(placed({layout.d.rows}, k.result, "bias")) {}
  ProductOperands operands() const {
    return {a.tensor().data, b.tensor().data, d.tensor().data, bias.tensor().data, before.tensor().data};
  }
  /// All that a product may have written, bit for bit.
  std::string bits() const {
    std::string all;
    for (const Operand* operand : {&d, &before})
      all.append(static_cast<const char*>(operand->tensor().data), operand->tensor().bytes());
    return all;
  }

  ProductKey key;
  ProductLayout layout;
  Operand a, b, d, before, bias;
};

/// A workspace that is as aligned as one has to be; products run one after the other.
void* workspace() {
  static Memory memory(Memory::Kind::host);
  static const Arena arena(memory, MemoryClass::workspace, ProductLibrary::workspace_bytes);
  return arena.address_of(0);
}

/// Every product that the library is asked for, of a shape.
std::set<ProductKey> keys_of(std::int64_t n, std::int64_t k, std::int64_t m) {
  std::set<ProductKey> keys;
  for (DType dtype : mindpipe::testing::number_types)
    for (const auto kind : {ProductKind::forward, ProductKind::backward_input, ProductKind::backward_weight,
                            ProductKind::first_weight})
      for (DType result : {dtype, mindpipe::testing::wide_of(dtype)})
        for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu})
          for (int with = 0; with < 4; ++with) {
            ProductCall call{.kind = kind, .operands = dtype, .result = result, .n = n, .k = k, .m = m};
            if (kind == ProductKind::backward_weight || kind == ProductKind::first_weight) {
              if (activation != Activation::none || with != 0 || result != mindpipe::testing::wide_of(dtype))
                continue;
            } else {
              call.activation = activation;
              if (kind == ProductKind::forward && (with & 1) != 0) call.bias = result;
              if ((with & 2) != 0) call.before = result;
            }
            for (const int processors : {0, 116})
              if (const auto key = fused_key(call, processors)) keys.insert(*key);
          }
  return keys;
}
std::set<ProductKey> all_keys() {
  std::set<ProductKey> keys = keys_of(16, 40, 24);
  keys.merge(keys_of(17, 13, 7));
  return keys;
}

/// Bits of a product, the kind of algorithm that the library took (rounding may hide an order of sums), and
/// for how many multiprocessors.
std::string work_on(const ProductKey& key) {
  Asked asked(key);
  ProductLibrary library;
  library.run(key, asked.operands(), workspace(), nullptr);
  return asked.bits() + made_cublasLt::last_work();
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) { return (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6; }

/// One sum after the other over rows as they lie: f32 where nothing is f64.
template <class Number>
Number sum_at(const Asked& asked, std::int64_t row, std::int64_t col) {
  const ProductKind kind = asked.key.kind;
  const std::int64_t n = asked.key.n, k = asked.key.k, m = asked.key.m;
  Number sum = 0;
  const auto add = [&](double a, double b) { sum += static_cast<Number>(a) * static_cast<Number>(b); };
  if (kind == ProductKind::forward)
    for (std::int64_t i = 0; i < k; ++i) add(asked.a[col * k + i], asked.b[row * k + i]);
  else if (kind == ProductKind::backward_input)
    for (std::int64_t i = 0; i < m; ++i) add(asked.a[i * k + col], asked.b[row * m + i]);
  else
    for (std::int64_t i = 0; i < n; ++i) add(asked.a[i * k + col], asked.b[i * m + row]);
  return sum;
}

/// Compares a product with the book: to the bit where nothing but sums, bias and maxima is computed.
template <class Number>
void expect_the_book(const Asked& asked, const Asked& old) {
  const Epilogue epilogue = asked.key.epilogue;
  const std::int64_t cols = asked.layout.d.rows;
  const bool bends = epilogue >= Epilogue::gelu;
  const double tolerance = asked.key.result == DType::bf16 ? 1e-2 : 1e-5;
  for (std::int64_t i = 0; i < asked.d.count(); ++i) {
    auto x = sum_at<Number>(asked, i / cols, i % cols);
    if (asked.layout.accumulate) x += static_cast<Number>(old.d[i]);
    if (has_bias(epilogue)) x += static_cast<Number>(asked.bias[i % cols]);
    if (epilogue == Epilogue::relu || epilogue == Epilogue::relu_bias) x = std::max(x, Number{0});
    double wanted = x;
    if (epilogue == Epilogue::gelu_backward) wanted *= gelu_slope(old.before[i]);
    else if (bends) wanted = gelu(x);
    Operand rounded({1}, asked.key.result);
    rounded.set(0, wanted);
    if (!bends) {
      ASSERT_EQ(asked.d[i], rounded[0]) << "element " << i;
      continue;
    }
    ASSERT_NEAR(asked.d[i], wanted, tolerance * std::max(1.0, std::abs(wanted))) << "element " << i;
    rounded.set(0, x);
    if (has_before(epilogue) && epilogue != Epilogue::gelu_backward) {
      ASSERT_EQ(asked.before[i], rounded[0]) << "element " << i;
    }
  }
}

class MadeCublasLt : public ::testing::Test {
 protected:
  void SetUp() override { made_cublasLt::begin(); }
};

TEST_F(MadeCublasLt, ComputesWhatTheBookSaysOfEveryProduct) {
  for (const ProductKey& key : all_keys()) {
    SCOPED_TRACE(to_string(key));
    Asked asked(key), old(key);
    ProductLibrary library;
    ASSERT_TRUE(library.has(key));
    library.run(key, asked.operands(), workspace(), nullptr);
    if (key.operands == DType::f64) expect_the_book<double>(asked, old);
    else expect_the_book<float>(asked, old);
  }
  EXPECT_EQ(made_cublasLt::said(), "") << "nothing of it is refused";
  EXPECT_EQ(made_cublasLt::alive(), 0);
}

TEST_F(MadeCublasLt, ComputesInItsStreamWithTheOperandsOfThatTime) {
  const ProductKey key{ProductKind::forward, DType::f32, DType::f32, Epilogue::bias, 16, 40, 24};
  Asked asked(key), other(key);
  ProductLibrary library;
  CUstream_st stream;
  const std::string before = asked.bits();
  library.run(key, asked.operands(), workspace(), &stream);
  library.run(key, other.operands(), workspace(), &stream);  // another bias in the one description
  EXPECT_EQ(asked.bits(), before);
  while (stream.turn()) continue;
  EXPECT_NE(asked.bits(), before);
  EXPECT_EQ(other.bits(), asked.bits());
}

std::vector<std::string> calls_made() {
  std::vector<std::string> all;
  for (int i = 0; i < made_cublasLt::calls(); ++i) all.push_back(made_cublasLt::call(i));
  return all;
}

/// Whether a mistake in the calls of one product is noticed: it throws, or writes other bits.
bool is_noticed(const ProductKey& key, const std::string& wanted) {
  ::testing::internal::CaptureStderr();  // which warns of each product that is refused
  bool noticed = true;
  try {
    noticed = work_on(key) != wanted;
  } catch (const Error&) {
  }
  ::testing::internal::GetCapturedStderr();
  return noticed;
}

/// A call that says what would hold without it: no operand is transposed, and nothing follows the sums.
bool is_said_anyway(const ProductKey& key, const std::string& call) {
  const auto attribute = [&](int name) { return call == fmt::format("describe, attribute {}", name); };
  const ProductLayout layout = layout_of(key);
  return (attribute(CUBLASLT_MATMUL_DESC_TRANSA) && !layout.a.transposed) ||
         (attribute(CUBLASLT_MATMUL_DESC_TRANSB) && !layout.b.transposed) ||
         (attribute(CUBLASLT_MATMUL_DESC_EPILOGUE) && key.epilogue == Epilogue::none);
}

TEST_F(MadeCublasLt, EveryCallThatIsLeftOutIsNoticed) {
  int tried = 0;
  for (const ProductKey& key : all_keys()) {
    made_cublasLt::begin();
    const std::string wanted = work_on(key);
    const std::vector<std::string> calls = calls_made();
    for (int i = 0; i < static_cast<int>(calls.size()); ++i) {
      const std::string& call = calls[static_cast<std::size_t>(i)];
      made_cublasLt::begin();
      made_cublasLt::leave_out(i);
      EXPECT_NE(is_noticed(key, wanted), is_said_anyway(key, call))
          << to_string(key) << ", call " << i << ": " << call;
      ++tried;
    }
  }
  EXPECT_GT(tried, 500);
}

TEST_F(MadeCublasLt, EveryBeginningBehindItsAttributesIsNoticed) {
  int tried = 0;
  for (const ProductKey& key : all_keys()) {
    made_cublasLt::begin();
    const std::string wanted = work_on(key);
    const std::vector<std::string> calls = calls_made();
    for (int i = 0; i + 1 < static_cast<int>(calls.size()); ++i) {
      const std::string &call = calls[static_cast<std::size_t>(i)],
                        &next = calls[static_cast<std::size_t>(i + 1)];
      made_cublasLt::begin();
      made_cublasLt::exchange(i);
      const bool noticed = is_noticed(key, wanted);
      if (!made_cublasLt::has_exchanged()) continue;
      const bool are_both_attributes =
          call.find("attribute") != std::string::npos && next.find("attribute") != std::string::npos;
      EXPECT_NE(noticed, are_both_attributes) << to_string(key) << ": " << next << " before " << call;
      tried += are_both_attributes ? 0 : 1;
    }
  }
  EXPECT_GT(tried, 50);
}

// -- products that are refused as they are run
// ----------------------------------------------------------------------------------------------------

bool is_with_bias(std::uint32_t epilogue) { return epilogue == CUBLASLT_EPILOGUE_BIAS; }

TEST_F(MadeCublasLt, AProductThatIsRefusedAsItIsRunIsOneWithoutAPlanFromThereOn) {
  const ProductKey key{ProductKind::forward, DType::bf16, DType::bf16, Epilogue::bias, 16, 40, 24};
  for (const auto status :
       {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH}) {
    Asked asked(key);
    ProductLibrary library;
    made_cublasLt::begin();
    made_cublasLt::refuse_to_run(is_with_bias, status);
    EXPECT_TRUE(library.has(key));
    const std::string before = asked.bits();
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(library.try_run(key, asked.operands(), workspace(), nullptr));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("for forward bf16 bf16 bias 16 40 24, for which it had proposed an algorithm"));
    EXPECT_EQ(asked.bits(), before);
    EXPECT_FALSE(library.has(key));
    made_cublasLt::begin();
    EXPECT_FALSE(library.try_run(key, asked.operands(), workspace(), nullptr));
    EXPECT_EQ(made_cublasLt::calls(), 0) << "it is asked no more";
    EXPECT_THROW(library.run(key, asked.operands(), workspace(), nullptr), Error);
  }
}

TEST_F(MadeCublasLt, AProductThatFailsAsItIsRunEndsTheRunWithASentence) {
  const ProductKey key{ProductKind::forward, DType::bf16, DType::bf16, Epilogue::bias, 16, 40, 24};
  Asked asked(key);
  ProductLibrary library;
  made_cublasLt::refuse_to_run(is_with_bias, CUBLAS_STATUS_EXECUTION_FAILED);
  try {
    library.try_run(key, asked.operands(), workspace(), nullptr);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("cublasLt: cublasLtMatmul answered CUBLAS_STATUS_EXECUTION_FAILED for "
                          "forward bf16 bf16 bias 16 40 24"));
  }
}

/// Calls that need no device are made of the real library too.
TEST_F(MadeCublasLt, TheRealLibraryUnderstandsWhatItIsToldAsThisOneDoes) {
  if (!made_cublasLt::open_beside(MINDPIPE_REAL_CUBLASLT))
    GTEST_SKIP() << "no " << MINDPIPE_REAL_CUBLASLT << " can be opened";
  for (const ProductKey& key : all_keys()) work_on(key);
  EXPECT_EQ(made_cublasLt::differs(), "");
  EXPECT_GT(made_cublasLt::made_beside(), 1000);
}

}  // namespace
}  // namespace mindpipe::cuda
