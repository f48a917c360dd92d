#include <cublasLt.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/made_cublasLt/made_cublasLt.h"
#include "kernels/operand.h"
#include "products_by_library.h"

// Numbers of products that the library refuses as they are run: those of products that it has no plan for,
// and the processor's within a rounding.
namespace mindpipe::testing {
namespace {

constexpr std::int64_t n = 24, k = 40, m = 16;

/// Operands of a layer, and what it is asked for.
struct Layer {
  DType dtype = DType::bf16, result = DType::bf16;
  Activation activation = Activation::none;
  bool has_bias = false, keeps_before = false;
  Operand x = Operand::random({n, k}, dtype, "x"), w = Operand::random({m, k}, dtype, "w", 0.2),
          bias = Operand::random({m}, result, "bias"), dy = Operand::random({n, m}, dtype, "dy", 0.2),
          before_of_x = Operand::random({n, k}, dtype, "before");

  /// The outputs of a forward and of a gradient of the input.
  std::vector<Operand> run(Backend& backend) const {
    std::vector<Operand> out;
    out.emplace_back(Shape{n, m}, result);
    out.emplace_back(Shape{n, m}, result);
    out.emplace_back(Shape{n, k}, result);
    backend.linear({.x = x,
                    .w = w,
                    .bias = has_bias ? bias.tensor() : Tensor{},
                    .activation = activation,
                    .before = keeps_before ? out[1].tensor() : Tensor{},
                    .y = out[0]});
    backend.linear_backward_input(
        {.dy = dy, .w = w, .activation = activation, .before = before_of_x, .dx = out[2]});
    return out;
  }
};

std::vector<Layer> layers() {
  std::vector<Layer> all;
  for (const DType dtype : number_types)
    for (const DType result : {dtype, wide_of(dtype)})
      for (const auto activation :
           {Activation::none, Activation::relu, Activation::gelu, Activation::silu, Activation::gelu_exact})
        for (int with = 0; with < 4; ++with)
          all.push_back({dtype, result, activation, (with & 1) != 0, (with & 2) != 0});
  return all;
}

ProductsByLibrary by_library(Memory& memory) {
  return ProductsByLibrary(make_cpu_backend(memory, 1, "auto"));
}

/// A run of a layer with every fused product refused as it is run, or with none planned.
std::vector<Operand> without_fused(const Layer& layer, bool refused) {
  Memory memory(Memory::Kind::host);
  ProductsByLibrary backend = by_library(memory);
  made_cublasLt::begin();
  const auto is_fused = [](std::uint32_t epilogue) { return epilogue != CUBLASLT_EPILOGUE_DEFAULT; };
  if (refused) made_cublasLt::refuse_to_run(is_fused, CUBLAS_STATUS_NOT_SUPPORTED);
  else made_cublasLt::plan_nothing(is_fused);
  ::testing::internal::CaptureStderr();
  std::vector<Operand> out = layer.run(backend);
  ::testing::internal::GetCapturedStderr();
  return out;
}

TEST(RefusedProducts, HaveTheNumbersOfProductsWithoutAPlan) {
  const Cpu cpu;
  int differ = 0;
  for (const Layer& layer : layers()) {
    SCOPED_TRACE(fmt::format("{} to {}, activation {}, bias {}, before {}", name_of(layer.dtype),
                             name_of(layer.result), static_cast<int>(layer.activation), layer.has_bias,
                             layer.keeps_before));
    Memory memory(Memory::Kind::host);
    ProductsByLibrary backend = by_library(memory);
    made_cublasLt::begin();
    const std::vector<Operand> fused = layer.run(backend), refused = without_fused(layer, true),
                               unplanned = without_fused(layer, false), wanted = layer.run(*cpu.backend);
    const double tolerance = layer.result == DType::bf16 ? 1e-2 : 2e-5;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(same_bits(refused[i], unplanned[i])) << "output " << i;
      differ += same_bits(refused[i], fused[i]) ? 0 : 1;
      for (std::int64_t at = 0; at < wanted[i].count(); ++at)
        for (const Operand* got : {&fused[i], &refused[i]})
          ASSERT_NEAR((*got)[at], wanted[i][at], tolerance * std::max(1.0, std::abs(wanted[i][at])))
              << "element " << at << " of output " << i;
    }
  }
  EXPECT_GT(differ, 0) << "the other way was not taken";
}

TEST(RefusedProducts, EndTheRunWhereThereIsNoOtherWay) {
  Memory memory(Memory::Kind::host);
  ProductsByLibrary backend = by_library(memory);
  made_cublasLt::begin();
  made_cublasLt::refuse_to_run([](std::uint32_t) { return true; }, CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_THROW(Layer{}.run(backend), Error);
}

}  // namespace
}  // namespace mindpipe::testing
