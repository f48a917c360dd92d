#include "cpu/simd/attention_by_words.h"
#include "kernels/unit_models/pairs.h"
#include "kernels/unit_models/unit_models.h"

namespace mindpipe::MINDPIPE_ISA {

const AttentionKernels pair_model_attention_kernels = tile::kernels_of<tile::Pairs<products::PairModel>>;

}  // namespace mindpipe::MINDPIPE_ISA
