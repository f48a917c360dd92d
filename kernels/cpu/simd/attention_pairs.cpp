#include "cpu/simd/attention_kernels.h"

#if MINDPIPE_ISA_LEVEL == 2
#include "cpu/simd/attention_by_words.h"

namespace mindpipe::MINDPIPE_ISA {

const AttentionKernels pair_attention_kernels = tile::kernels_of<tile::Pairs<products::PairInstruction>>;

}  // namespace mindpipe::MINDPIPE_ISA
#endif
