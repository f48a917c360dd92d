#include "cpu/simd/attention_kernels.h"

#if MINDPIPE_ISA_LEVEL == 2
#include "cpu/simd/attention_by_tiles.h"

namespace mindpipe::MINDPIPE_ISA {

const AttentionKernels amx_attention_kernels = amx::kernels_of<products::ProcessorTiles>;

}  // namespace mindpipe::MINDPIPE_ISA
#endif
