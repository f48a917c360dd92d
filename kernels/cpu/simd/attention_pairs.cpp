#include "cpu/simd/attention_by_words.h"

namespace mindpipe::MINDPIPE_ISA {

#if MINDPIPE_ISA_LEVEL == 2
const AttentionKernels pair_attention_kernels = tile::kernels_of<tile::Pairs<products::PairInstruction>>;
#endif
const AttentionKernels pair_model_attention_kernels = tile::kernels_of<tile::Pairs<products::PairModel>>;

}  // namespace mindpipe::MINDPIPE_ISA
