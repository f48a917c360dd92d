#include "kernels/unit_models/unit_models.h"

#if MINDPIPE_ISA_LEVEL == 2
#include "cpu/simd/attention_by_tiles.h"
#include "kernels/unit_models/tiles.h"

namespace mindpipe::MINDPIPE_ISA {

const AttentionKernels amx_model_attention_kernels = amx::kernels_of<products::ModelTiles>;

}  // namespace mindpipe::MINDPIPE_ISA
#endif
