#include "cpu/simd/attention_kernels.h"

#if MINDPIPE_ISA_LEVEL == 2
#include "cpu/simd/attention_amx_backward.h"
#include "cpu/simd/attention_amx_forward.h"

namespace mindpipe::MINDPIPE_ISA {

template <class Unit>
constexpr AttentionKernels tiles_of{amx::side, amx::forward_scratch, amx::backward_scratch,
                                    amx::forward<Unit>, amx::backward<Unit>};
const AttentionKernels amx_attention_kernels = tiles_of<products::ProcessorTiles>;
const AttentionKernels amx_model_attention_kernels = tiles_of<products::ModelTiles>;

}  // namespace mindpipe::MINDPIPE_ISA
#endif
