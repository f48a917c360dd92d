#include <gtest/gtest.h>

#include "cuda/device/attention_f64.h"
#include "kernels/attention_cases.h"
#include "kernels/on_a_stream.h"

/// The GPU's attention in f64, thread by thread on the CUDA runtime of cuda_on_host.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

/// Computes both passes of an attention.
void answer(Asked& a) {
  const AttentionCall call = a.call_of_both();
  on_a_stream([&](cudaStream_t stream) {
    cuda::attention_f64(call, stream);
    cuda::attention_backward_f64(call, stream);
  });
}

TEST(CudaAttentionInF64, AgreesWithTheBook) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Asked asked(c, DType::f64);
    answer(asked);
    const Reference reference(asked);
    EXPECT_LE(difference(asked.out, reference.out), 1e-13);
    EXPECT_LE(difference(asked.log_sum, reference.log_sum), 1e-13);
    EXPECT_LE(difference_of_heads(asked.dq, reference.dq, c.queries, 1, static_cast<int>(c.heads)), 1e-13);
    EXPECT_LE(difference_of_heads(asked.dkv, reference.dkv, c.keys, 0, static_cast<int>(2 * c.key_heads)),
              1e-13);
  }
}

TEST(CudaAttentionInF64, RowsBeyondTheQuestionStayAsTheyAre) {
  const Case c{.name = "spare rows", .queries = 5, .keys = 9, .width = 6, .lengths = {9, 7}, .spare_rows = 4};
  Asked asked(c, DType::f64);
  answer(asked);
  for (std::int64_t s = 0; s < c.samples; ++s) {
    for (std::int64_t e = asked.k_at(s, c.keys, 0); e < asked.k_at(s + 1, 0, 0); ++e)
      ASSERT_TRUE(std::isnan(asked.dkv[e]));
    for (std::int64_t row = 0; row < c.queries + c.spare_rows; ++row)
      ASSERT_TRUE(std::isnan(asked.dq[asked.q_at(s, row, -1)])) << "the head beside";
  }
}

}  // namespace
