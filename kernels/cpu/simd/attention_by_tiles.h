#pragma once
#include "cpu/simd/attention_amx_backward.h"
#include "cpu/simd/attention_amx_forward.h"

namespace mindpipe::MINDPIPE_ISA::amx {

/// The kernels over these tiles.
template <class Tiles>
constexpr AttentionKernels kernels_of{side, forward_scratch, backward_scratch, forward<Tiles>,
                                      backward<Tiles>};

}  // namespace mindpipe::MINDPIPE_ISA::amx
