#include <gtest/gtest.h>

#include "cuda/device/flash.h"
#include "kernels/attention_cases.h"
#include "kernels/on_a_stream.h"
#include "plans/planned_attention.h"

/// The GPU's attention kernels with all their threads, on the CUDA runtime of cuda_on_host.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

void forward(const AttentionCall& call, DType dtype) {
  on_a_stream([&](cudaStream_t stream) {
    ASSERT_EQ(cuda::flash_forward(call, dtype == DType::bf16, stream), cudaSuccess);
  });
}
void backward(const AttentionCall& call, DType dtype) {
  on_a_stream([&](cudaStream_t stream) {
    ASSERT_EQ(cuda::flash_backward(call, dtype == DType::bf16, stream), cudaSuccess);
  });
}

/// Computes both passes by the GPU's kernels.
void answer(Asked& a) {
  const AttentionCall call = a.call_of_both();
  forward(call, a.dtype);
  backward(call, a.dtype);
}

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

void expect_near_the_reference(const Case& c, DType dtype, double out_tolerance, double gradient_tolerance) {
  SCOPED_TRACE(fmt::format("{}, {}", c.name, dtype));
  Asked asked(c, dtype);
  answer(asked);
  const Reference reference(asked);
  const int heads = static_cast<int>(c.heads), key_heads = static_cast<int>(c.key_heads);
  EXPECT_LE(difference(asked.out, reference.out), out_tolerance);
  EXPECT_LE(difference(asked.log_sum, reference.log_sum), 4e-6);
  EXPECT_LE(difference_of_heads(asked.dq, reference.dq, c.queries, 1, heads), gradient_tolerance);
  EXPECT_LE(difference_of_heads(asked.dkv, reference.dkv, c.keys, 0, 2 * key_heads), gradient_tolerance);
}

TEST(CudaFlash, AgreesWithTheReferenceInF32) {
  for (const Case& c : cases) expect_near_the_reference(c, DType::f32, 4e-6, 8e-6);
  for (const Case& c : wide_cases) expect_near_the_reference(c, DType::f32, 4e-6, 8e-6);
}

TEST(CudaFlash, AgreesWithTheReferenceInBf16) {
  for (const Case& c : cases) expect_near_the_reference(c, DType::bf16, 0.008, 0.016);
  for (const Case& c : wide_cases) expect_near_the_reference(c, DType::bf16, 0.008, 0.016);
}

/// What a library does in pieces is cut as here: each piece alone, and all of them together the whole.
TEST(CudaFlash, PiecesOfSamplesAndHeadsAreTheWhole) {
  const Case c{.name = "pieces",
               .samples = 2,
               .queries = 40,
               .keys = 40,
               .heads = 4,
               .key_heads = 2,
               .width = 16,
               .lengths = {40, 11}};
  Asked whole(c, DType::bf16);
  answer(whole);
  for (const AttentionPieces pieces : {AttentionPieces{2, 1}, AttentionPieces{2, 2}}) {
    Asked cut(c, DType::bf16);
    const AttentionCall call = cut.call_of_both();
    for (int number = 0; number < pieces.count(); ++number)
      forward(piece_of(call, pieces, number, DType::bf16), DType::bf16);
    for (int number = 0; number < pieces.count(); ++number)
      backward(piece_of(call, pieces, number, DType::bf16), DType::bf16);
    for (const auto& [of_pieces, of_whole] : {std::pair{&cut.out, &whole.out},
                                              {&cut.log_sum, &whole.log_sum},
                                              {&cut.dq, &whole.dq},
                                              {&cut.dkv, &whole.dkv}})
      EXPECT_EQ(std::memcmp(of_pieces->memory.data(), of_whole->memory.data(), of_whole->memory.size()), 0)
          << pieces.of_samples << " x " << pieces.of_heads;
  }
}

TEST(CudaFlash, TheDropoutMaskIsTheProcessors) {
  // With values that name their key and no softmax to speak of, an output says which keys were kept.
  const Case c{.name = "mask",
               .samples = 2,
               .queries = 70,
               .keys = 67,
               .heads = 2,
               .key_heads = 1,
               .width = 8,
               .dropout = 0.4f,
               .head_offset = 5,
               .scale = 1e-9f};
  Asked on_cpu(c, DType::f32), on_gpu(c, DType::f32);
  on_cpu.forward(Isa::baseline);
  answer(on_gpu);
  for (std::int64_t i = 0; i < on_cpu.out.tensor.count(); ++i)
    ASSERT_NEAR(on_gpu.out[i], on_cpu.out[i], 2e-6) << i;
}

TEST(CudaFlash, RowsBeyondTheQuestionStayAsTheyAre) {
  const Case c{
      .name = "spare rows", .queries = 33, .keys = 45, .width = 24, .lengths = {45, 7}, .spare_rows = 4};
  for (DType dtype : {DType::f32, DType::bf16}) {
    Asked asked(c, dtype);
    answer(asked);
    for (std::int64_t s = 0; s < c.samples; ++s) {
      for (std::int64_t e = asked.k_at(s, c.keys, 0); e < asked.k_at(s + 1, 0, 0); ++e)
        ASSERT_TRUE(std::isnan(asked.dkv[e]));
      for (std::int64_t row = 0; row < c.queries + c.spare_rows; ++row)
        ASSERT_TRUE(std::isnan(asked.dq[asked.q_at(s, row, -1)])) << "the head beside";
    }
  }
}

TEST(CudaFlash, KeysBeyondTheLengthMayHoldAnything) {
  const Case c{.queries = 33, .keys = 130, .width = 24, .lengths = {70, 0}, .spare_rows = 5};
  for (DType dtype : {DType::f32, DType::bf16}) {
    Asked clean(c, dtype), dirty(c, dtype);
    for (std::int64_t s = 0; s < c.samples; ++s)
      for (std::int64_t e = dirty.k_at(s, c.lengths[static_cast<std::size_t>(s)], 0);
           e < dirty.k_at(s + 1, 0, 0); ++e)
        dirty.kv.set(e, std::nan(""));
    answer(clean);
    answer(dirty);
    EXPECT_TRUE(same_bits(clean.out, dirty.out) && same_bits(clean.dq, dirty.dq) &&
                same_bits(clean.dkv, dirty.dkv))
        << name_of(dtype);
  }
}

TEST(CudaFlash, ANotANumberIsNotLost) {
  for (int operand = 0; operand < 3; ++operand) {
    Asked asked({.samples = 1, .queries = 33, .keys = 33, .heads = 1, .key_heads = 1, .width = 16},
                DType::f32);
    if (operand == 0) asked.q.set(asked.q_at(0, 1, 0), std::nan(""));
    if (operand == 1) asked.kv.set(asked.k_at(0, 20, 0), std::nan(""));
    if (operand == 2) asked.kv.set(asked.k_at(0, 20, 1), std::nan(""));
    answer(asked);
    EXPECT_TRUE(std::isnan(asked.out[asked.out_at(0, 1, 0)])) << "operand " << operand;
  }
}

}  // namespace
