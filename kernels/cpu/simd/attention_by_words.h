#pragma once
#include "cpu/simd/attention_backward.h"
#include "cpu/simd/attention_forward.h"

namespace mindpipe::MINDPIPE_ISA::tile {

/// The kernels of the vector units whose factors consist of these words.
template <class Words>
constexpr AttentionKernels kernels_of{queries, forward_scratch<Words>, backward_scratch<Words>,
                                      forward<Words>, backward<Words>};

}  // namespace mindpipe::MINDPIPE_ISA::tile
