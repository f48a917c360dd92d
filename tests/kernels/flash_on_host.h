#pragma once
#include "cuda/device/flash.h"
#include "kernels/attention_cases.h"
#include "kernels/on_a_stream.h"

/// The GPU's attention kernels with all their threads, on the CUDA runtime of cuda_on_host, for the tests
/// that ask them.
namespace mindpipe::testing {

inline void flash_forward(const AttentionCall& call, DType dtype) {
  on_a_stream([&](cudaStream_t stream) {
    ASSERT_EQ(cuda::flash_forward(call, dtype == DType::bf16, stream), cudaSuccess);
  });
}
inline void flash_backward(const AttentionCall& call, DType dtype) {
  on_a_stream([&](cudaStream_t stream) {
    ASSERT_EQ(cuda::flash_backward(call, dtype == DType::bf16, stream), cudaSuccess);
  });
}

/// Computes both passes by the GPU's kernels.
inline void answer(Asked& a) {
  const AttentionCall call = a.call_of_both();
  flash_forward(call, a.dtype);
  flash_backward(call, a.dtype);
}

inline void expect_near_the_reference(const Case& c, DType dtype, double out_tolerance,
                                      double gradient_tolerance) {
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

/// The cases of a few tiles, which take a small part of the time.
inline bool is_small(const Case& c) { return c.samples * c.heads * c.queries * c.keys <= 2 * 65 * 65; }

}  // namespace mindpipe::testing
