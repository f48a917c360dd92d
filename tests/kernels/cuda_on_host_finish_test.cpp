#include <gtest/gtest.h>

#include "cuda/device/activation.h"
#include "cuda/device/finish.h"
#include "cuda/device/padding.h"
#include "kernels/on_a_stream.h"
#include "kernels/operand.h"
#include "operations/attention.h"
#include "operations/operands.h"

/// What follows a library's product or attention, on the CUDA runtime of cuda_on_host.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

constexpr std::int64_t rows = 9, cols = 70;  // two blocks and a part of one

cuda::Finish finish_of(const Operand& sums, const Operand& result, Activation activation, const Operand* bias,
                       const Operand* before) {
  return {sums.tensor().data,
          result.tensor().data,
          dtype_index(result.dtype()),
          activation,
          bias ? bias->tensor().data : nullptr,
          bias ? dtype_index(bias->dtype()) : 1,
          before ? before->tensor().data : nullptr,
          before ? dtype_index(before->dtype()) : 1,
          result.count(),
          cols};
}

const Activation activations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::silu,
                                  Activation::gelu_exact};
double tolerance(DType dtype, double at) {
  return (dtype == DType::f64 ? 1e-14 : dtype == DType::f32 ? 3e-6 : 4e-3) * std::max(1.0, std::abs(at));
}

TEST(CudaFinish, BiasAndActivationFollowTheSums) {
  for (DType result : number_types)
    for (DType of_bias : {wide_of(result), result})
      for (Activation activation : activations)
        for (int with = 0; with < 4; ++with) {
          SCOPED_TRACE(fmt::format("{}, bias {}, activation {}, with {}", name_of(result), name_of(of_bias),
                                   static_cast<int>(activation), with));
          const Operand sums = Operand::random({rows, cols}, wide_of(result), "sums"),
                        bias = Operand::random({cols}, of_bias, "bias");
          const Operand y({rows, cols}, result), before({rows, cols}, result);
          on_a_stream([&](cudaStream_t stream) {
            cuda::finish_forward(finish_of(sums, y, activation, (with & 1) != 0 ? &bias : nullptr,
                                           (with & 2) != 0 ? &before : nullptr),
                                 stream);
          });
          for (std::int64_t i = 0; i < y.count(); ++i) {
            const double z = sums[i] + ((with & 1) != 0 ? bias[i % cols] : 0),
                         want = cuda::activated(activation, z);
            ASSERT_NEAR(y[i], want, tolerance(result, want));
            ASSERT_NEAR(before[i], (with & 2) != 0 ? z : 0, tolerance(result, z));
          }
        }
}

TEST(CudaFinish, TheGradientGoesThroughTheActivation) {
  for (DType result : number_types)
    for (DType of_before : {wide_of(result), result})
      for (Activation activation : activations) {
        const Operand sums = Operand::random({rows, cols}, wide_of(result), "sums"),
                      before = Operand::random({rows, cols}, of_before, "before", 3);
        const Operand dx({rows, cols}, result);
        on_a_stream([&](cudaStream_t stream) {
          cuda::finish_backward(finish_of(sums, dx, activation, nullptr, &before), stream);
        });
        for (std::int64_t i = 0; i < dx.count(); ++i) {
          const double want = sums[i] * cuda::derivative_at(activation, before[i]);
          ASSERT_NEAR(dx[i], want, tolerance(result, want))
              << name_of(result) << ", activation " << static_cast<int>(activation);
        }
      }
}

TEST(CudaFinish, SumsMayTurnIntoTheResultInPlace) {
  const Operand sums = Operand::random({rows, cols}, DType::f32, "sums"), y = sums.copy();
  on_a_stream([&](cudaStream_t stream) {
    cuda::finish_forward(finish_of(y, y, Activation::silu, nullptr, nullptr), stream);
  });
  for (std::int64_t i = 0; i < y.count(); ++i)
    ASSERT_NEAR(y[i], cuda::activated(Activation::silu, sums[i]), 1e-6);
}

TEST(CudaPadding, OnlyWhatPaddingLeavesUndefinedIsCleared) {
  const std::int64_t samples = 3, queries = 5, keys = 7, heads = 3, width = 8;
  const Operand lengths = Operand::tokens({7, 0, 4});
  const auto ones = [](const Shape& shape, DType dtype) {
    Operand made(shape, dtype);
    for (std::int64_t i = 0; i < made.count(); ++i) made.set(i, 1);
    return made;
  };
  const Operand q = ones({samples, queries, heads, width}, DType::bf16),
                kv = ones({samples, keys, 2 * heads, width}, DType::bf16),
                out = ones(q.tensor().shape, DType::bf16);
  const Operand log_sum = ones({samples, heads, queries}, DType::f32),
                dq = ones({samples, queries, heads + 1, width}, DType::bf16),
                dkv = ones(kv.tensor().shape, DType::bf16);
  const AttentionParameters parameters{.queries = queries, .keys = keys, .key_lengths = lengths};
  const auto part = [&](const Operand& of, int first) { return Heads{of, first, static_cast<int>(heads)}; };
  const AttentionBackwardOperands operands{parameters, part(q, 0), part(kv, 0), part(kv, 3),  log_sum,
                                           out,        out,        part(dq, 1), part(dkv, 0), part(dkv, 3)};
  const AttentionCall call = operands.checked();
  on_a_stream([&](cudaStream_t stream) {
    cuda::clear_empty_rows(call, stream);
    cuda::clear_padded_gradients(call, stream);
  });
  for (std::int64_t s = 0; s < samples; ++s) {
    const std::int64_t length = s == 0 ? 7 : s == 1 ? 0 : 4;
    for (std::int64_t i = 0; i < queries * heads * width; ++i)
      ASSERT_EQ(out[s * queries * heads * width + i], length > 0);
    for (std::int64_t i = 0; i < queries * heads; ++i)
      ASSERT_EQ(log_sum[s * queries * heads + i], length > 0);
    for (std::int64_t i = 0; i < queries * (heads + 1) * width; ++i)
      ASSERT_EQ(dq[s * queries * (heads + 1) * width + i], length > 0 || i % ((heads + 1) * width) < width)
          << "the head beside stays";
    for (std::int64_t row = 0; row < keys; ++row)
      for (std::int64_t i = 0; i < 2 * heads * width; ++i)
        ASSERT_EQ(dkv[(s * keys + row) * 2 * heads * width + i], row < length);
  }
}

}  // namespace
