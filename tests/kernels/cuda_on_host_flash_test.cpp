#include <gtest/gtest.h>

#include "kernels/flash_on_host.h"
#include "plans/planned_attention.h"

/// The GPU's attention kernels with all their threads, on the CUDA runtime of cuda_on_host.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

TEST(CudaFlash, AgreesWithTheReferenceInF32) {
  for (const Case& c : cases)
    if (is_small(c)) expect_near_the_reference(c, DType::f32, 4e-6, 8e-6);
}

TEST(CudaFlash, AgreesWithTheReferenceInBf16) {
  for (const Case& c : cases)
    if (is_small(c)) expect_near_the_reference(c, DType::bf16, 0.008, 0.016);
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
      flash_forward(piece_of(call, pieces, number, DType::bf16), DType::bf16);
    for (int number = 0; number < pieces.count(); ++number)
      flash_backward(piece_of(call, pieces, number, DType::bf16), DType::bf16);
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
