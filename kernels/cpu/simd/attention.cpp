#include "cpu/simd/attention_backward.h"
#include "cpu/simd/attention_forward.h"
#include "cpu/simd/attention_plain.h"

namespace mindpipe::MINDPIPE_ISA {

const AttentionKernels attention_kernels = {
    {plain::tile_queries, tile::queries, tile::queries},
    {plain::forward_scratch, tile::forward_scratch, tile::forward_scratch},
    {plain::backward_scratch, tile::backward_scratch, tile::backward_scratch},
    {plain::forward<double>, tile::forward<float>, tile::forward<std::uint16_t>},
    {plain::backward<double>, tile::backward<float>, tile::backward<std::uint16_t>},
};

}  // namespace mindpipe::MINDPIPE_ISA
