#include "cpu/simd/attention_kernels.h"
#include "cpu/simd/attention_plain.h"

namespace mindpipe::MINDPIPE_ISA {

const AttentionKernels attention_kernels = {
    {plain::tile_queries, plain::tile_queries, plain::tile_queries},
    {plain::forward_scratch, plain::forward_scratch, plain::forward_scratch},
    {plain::backward_scratch, plain::backward_scratch, plain::backward_scratch},
    {plain::forward<double>, plain::forward<float>, plain::forward<bf16>},
    {plain::backward<double>, plain::backward<float>, plain::backward<bf16>},
};

}  // namespace mindpipe::MINDPIPE_ISA
