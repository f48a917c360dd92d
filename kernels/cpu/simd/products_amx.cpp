#include "cpu/products.h"

#if MINDPIPE_ISA_LEVEL == 2
#include "cpu/simd/products_amx_engine.h"
#include "cpu/simd/products_amx_tiles.h"

namespace mindpipe::MINDPIPE_ISA {

const ProductKernels amx_kernels = products::amx::kernels_of<products::ProcessorTiles>;

}  // namespace mindpipe::MINDPIPE_ISA
#endif
