#include <limits>

#include "cuda/device/attention_f64.h"
#include "cuda/device/finish.h"
#include "cuda/device/padding.h"
#include "kernels/addresses.h"
#include "kernels/on_a_stream.h"

/// Addresses of the first and last blocks of kernels that are no operations, or whose operands are no
/// model's: as large as 31 or 32 bits count.
using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

TEST_F(Addresses, OfSumsOverAStepAndItsDecision) {
  constexpr std::int32_t last = std::numeric_limits<std::int32_t>::max();
  expect_reached("sum_spans", [&](Space& s) {
    const Tensor spans = s.take({2, 2}, i32);
    const std::int32_t edges[] = {0, 5, last - 5, last};
    std::copy(std::begin(edges), std::end(edges), spans.as<std::int32_t>());
    gpu.sum_spans({s.take({last}, f32), spans, s.take({2}, DType::f64)});
  });
  expect_reached("clip_and_scale", [&](Space& s) {
    gpu.clip_and_scale({{.valid = 1}, s.take({2}, DType::f64), s.take_part({Decision::places}, DType::f64)});
  });
}

TEST_F(Addresses, OfWeightsAndStatisticsThatAreTurnedAndShared) {
  constexpr std::int64_t columns = std::int64_t{1} << 31;
  expect_reached("share_taps", [&](Space& s) {
    gpu.share_taps({s.take({3, columns}, bf16), s.take({3, 2 * columns}, bf16)});
  });
  expect_reached("share_taps_backward", [&](Space& s) {
    gpu.share_taps_backward(
        {s.take({3, 2 * columns}, f32), s.take({3, columns}, bf16), s.take({3, columns}, f32)});
  });
  const auto matrices = [&](Space& s) { return s.take({9, 20'000, 30'000}, f32); };
  for (bool add : {false, true})
    expect_reached("transpose", [&](Space& s) { gpu.transpose({matrices(s), add, matrices(s)}); });
  constexpr std::int64_t chunks = 3, rows = chunks * pixel_chunk;
  expect_reached("batch_statistics", [&](Space& s) {
    gpu.batch_statistics({s.take({chunks, 2, columns / 2}, f32), rows, 1e-5, s.take({3, columns / 2}, f32)});
  });
  constexpr std::int64_t samples = 32'768;
  expect_reached("patches", [&](Space& s) {
    gpu.patches({s.take({samples, 3 * 224 * 224}, DType::u8),
                 {3, 224, 224, 16},
                 1,
                 s.take({samples, 197, 768}, bf16)});
  });
}

TEST_F(Addresses, OfWhatFollowsAProduct) {
  for (const Model& m : models) {
    SCOPED_TRACE(m.name);
    const auto of_type = [&](Space& s, DType dtype) { return s.take({m.all_rows(), m.words}, dtype).data; };
    expect_reached("finish_forward", [&](Space& s) {
      const cuda::Finish call{of_type(s, f32),
                              of_type(s, bf16),
                              2,
                              Activation::gelu,
                              s.take_part({m.words}, bf16).data,
                              2,
                              of_type(s, bf16),
                              2,
                              m.all_rows() * m.words,
                              m.words};
      on_a_stream([&](cudaStream_t stream) { cuda::finish_forward(call, stream); });
    });
    expect_reached("finish_backward", [&](Space& s) {
      const cuda::Finish call{
          of_type(s, f32),        of_type(s, bf16), 2, Activation::gelu, nullptr, 1, of_type(s, bf16), 2,
          m.all_rows() * m.words, m.words};
      on_a_stream([&](cudaStream_t stream) { cuda::finish_backward(call, stream); });
    });
  }
}

/// Attention of more samples than a GPU takes, on operands of a space.
struct ManySamples {
  AttentionCall call{
      .samples = 60'000, .query_heads = 32, .key_heads = 8, .queries = 24, .keys = 20, .width = 128};
  DType dtype;

  HeadsView view(Space& s, std::int64_t rows, std::int64_t heads) const {
    return {s.take({call.samples, rows, heads, call.width}, dtype).data, rows * heads * call.width,
            heads * call.width};
  }
  HeadsView of_queries(Space& s) const { return view(s, call.queries, call.query_heads); }
  HeadsView of_keys(Space& s) const { return view(s, call.keys, call.key_heads); }
  void take_log_sum(Space& s, DType type) {
    call.log_sum = s.take({call.samples, call.query_heads, call.queries}, type).data;
    call.log_sum_is_f64 = type == DType::f64;
  }
};

TEST_F(Addresses, OfAttentionsPadding) {
  expect_reached("fill_lengths", [&](Space& s) {
    const std::int64_t count = (std::int64_t{1} << 32) + 5;
    const Tensor lengths = s.take({count}, i32);
    on_a_stream(
        [&](cudaStream_t stream) { cuda::fill_lengths(lengths.as<std::int32_t>(), count, 7, stream); });
  });
  const auto padded = [&](Space& s) {  // no sample has a key
    ManySamples of{.dtype = bf16};
    of.call.key_lengths = s.take({of.call.samples}, i32).as<std::int32_t>();
    return of;
  };
  expect_reached("clear_empty_rows", [&](Space& s) {
    ManySamples of = padded(s);
    of.call.out = of.of_queries(s);
    of.take_log_sum(s, f32);
    on_a_stream([&](cudaStream_t stream) { cuda::clear_empty_rows(of.call, stream); });
  });
  expect_reached("clear_padded_gradients", [&](Space& s) {
    ManySamples of = padded(s);
    of.call.dq = of.of_queries(s);
    of.call.dk = of.of_keys(s);
    of.call.dv = of.of_keys(s);
    on_a_stream([&](cudaStream_t stream) { cuda::clear_padded_gradients(of.call, stream); });
  });
}

TEST_F(Addresses, OfAttentionInF64) {
  const auto asked = [&](Space& s) {
    ManySamples of{.dtype = DType::f64};
    of.call.q = of.of_queries(s);
    of.call.k = of.of_keys(s);
    of.call.v = of.of_keys(s);
    of.call.out = of.of_queries(s);
    of.take_log_sum(s, DType::f64);
    return of;
  };
  expect_reached("attention_f64", [&](Space& s) {
    const ManySamples of = asked(s);
    on_a_stream([&](cudaStream_t stream) { cuda::attention_f64(of.call, stream); });
  });
  expect_reached("attention_backward_f64", [&](Space& s) {
    ManySamples of = asked(s);
    of.call.dout = of.of_queries(s);
    of.call.dq = of.of_queries(s);
    of.call.dk = of.of_keys(s);
    of.call.dv = of.of_keys(s);
    on_a_stream([&](cudaStream_t stream) { cuda::attention_backward_f64(of.call, stream); });
  });
}

}  // namespace
