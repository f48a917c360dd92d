#include "cpu/simd/attention_backward.h"
#include "cpu/simd/attention_forward.h"
#include "cpu/simd/attention_plain.h"
#include "cpu/simd/attention_short.h"

namespace mindpipe::MINDPIPE_ISA {

namespace {

std::size_t forward_scratch(const AttentionCall& call) {
  return few::fits(call) ? few::scratch_bytes(call) : tile::forward_scratch(call);
}

template <class T>
void forward(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t first_query,
             std::int64_t last_query, void* scratch) {
  if (few::fits(call)) few::forward<T>(call, sample, head, scratch);
  else tile::forward<T>(call, sample, head, first_query, last_query, scratch);
}

}  // namespace

const AttentionKernels attention_kernels = {
    {plain::tile_queries, tile::queries, tile::queries},
    {plain::forward_scratch, forward_scratch, forward_scratch},
    {plain::backward_scratch, tile::backward_scratch, tile::backward_scratch},
    {plain::forward<double>, forward<float>, forward<std::uint16_t>},
    {plain::backward<double>, tile::backward<float>, tile::backward<std::uint16_t>},
};

}  // namespace mindpipe::MINDPIPE_ISA
