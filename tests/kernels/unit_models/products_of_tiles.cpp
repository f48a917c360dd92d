#include "cpu/simd/products_amx_engine.h"
#include "kernels/unit_models/tiles.h"
#include "kernels/unit_models/unit_models.h"

namespace mindpipe::MINDPIPE_ISA {

const ProductKernels amx_model_kernels = products::amx::kernels_of<products::ModelTiles>;

}  // namespace mindpipe::MINDPIPE_ISA
