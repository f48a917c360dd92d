// thorough
#include <gtest/gtest.h>

#include "kernels/addresses.h"
#include "kernels/flash_on_host.h"

/// What takes long of the GPU's attention kernels on the host: many tiles, many orders of threads, long
/// sequences.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

const Case wide_cases[] = {
    {.name = "width 256",
     .samples = 1,
     .queries = 33,
     .keys = 40,
     .heads = 2,
     .key_heads = 1,
     .width = 256,
     .causal = true,
     .scale = 0.06f},
    {.name = "width 200",
     .samples = 1,
     .queries = 5,
     .keys = 65,
     .heads = 1,
     .key_heads = 1,
     .width = 200,
     .dropout = 0.2f,
     .scale = 0.07f},
    {.name = "odd width",
     .samples = 2,
     .queries = 70,
     .keys = 70,
     .heads = 2,
     .key_heads = 2,
     .width = 13,
     .causal = true,
     .lengths = {70, 11}},
    {.name = "whole tiles",
     .samples = 1,
     .queries = 128,
     .keys = 128,
     .heads = 2,
     .key_heads = 2,
     .width = 64,
     .causal = true},
};

TEST(CudaFlashCases, AgreeWithTheReference) {
  const auto check = [](const Case& c) {
    expect_near_the_reference(c, DType::f32, 4e-6, 8e-6);
    expect_near_the_reference(c, DType::bf16, 0.008, 0.016);
  };
  for (const Case& c : cases)
    if (!is_small(c)) check(c);
  for (const Case& c : wide_cases) check(c);
}

TEST(CudaFlashCases, HaveTheSameBitsInEveryOrderOfThreads) {
  const Case c{.name = "orders",
               .samples = 2,
               .queries = 65,
               .keys = 130,
               .heads = 2,
               .key_heads = 1,
               .width = 24,
               .causal = true,
               .lengths = {130, 70},
               .dropout = 0.1f};
  for (DType dtype : {DType::f32, DType::bf16}) {
    Asked first(c, dtype);
    answer(first);
    for (const on_host::Order order :
         {on_host::Order{.backwards = true}, {.seed = 1}, {.seed = 2}, {.seed = 3}}) {
      Asked again(c, dtype);
      on_host::run_in(order);
      answer(again);
      on_host::run_in({});
      EXPECT_TRUE(same_bits(again.out, first.out) && same_bits(again.log_sum, first.log_sum) &&
                  same_bits(again.dq, first.dq) && same_bits(again.dkv, first.dkv))
          << name_of(dtype) << ", seed " << order.seed;
    }
  }
}

TEST_F(Addresses, OfOurOwnAttention) {
  Model many = models[0], lengthy = models[1];
  many.samples = 4096;  // more elements than 32 bits count
  lengthy.samples = 1;
  for (const Model& m : {many, lengthy}) {
    SCOPED_TRACE(m.name);
    const int heads = static_cast<int>(m.heads), key_heads = static_cast<int>(m.key_heads);
    const AttentionParameters parameters{.queries = m.rows, .keys = m.rows, .causal = true, .scale = 0.1f};
    const auto of = [&](Space& s, int count) {
      return s.take({m.samples, m.rows, count, m.head_width}, bf16);
    };
    const auto run = [&](Space& s) {
      const Tensor q = of(s, heads), kv = of(s, 2 * key_heads), out = of(s, heads), dout = of(s, heads),
                   dq = of(s, heads), dkv = of(s, 2 * key_heads),
                   log_sum = s.take({m.samples, m.heads, m.rows}, f32);
      const AttentionBackwardOperands operands{
          parameters, {q, 0, heads},  {kv, 0, key_heads},  {kv, key_heads, key_heads}, log_sum, out,
          dout,       {dq, 0, heads}, {dkv, 0, key_heads}, {dkv, key_heads, key_heads}};
      on_a_stream([&](cudaStream_t stream) {
        EXPECT_EQ(cuda::flash_forward(operands.checked(), true, stream), cudaSuccess);
        EXPECT_EQ(cuda::flash_backward(operands.checked(), true, stream), cudaSuccess);
      });
    };
    expect_reached(
        "both passes", [&](Space& s) { run(s); }, 1);
  }
}

}  // namespace
