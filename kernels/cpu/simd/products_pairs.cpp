#include "cpu/simd/products_engine.h"

namespace mindpipe::MINDPIPE_ISA {

template <class Arithmetic>
constexpr ProductKernels pairs{products::tile_rows, products::tile_cols,
                               products::workspace_bytes<2 * depth_block>,
                               products::run<products::Pairs<Arithmetic>>};

#if MINDPIPE_ISA_LEVEL == 2
extern const ProductKernels pair_kernels;
const ProductKernels pair_kernels = pairs<products::PairInstruction>;
#endif
extern const ProductKernels pair_model_kernels;
const ProductKernels pair_model_kernels = pairs<products::PairModel>;

}  // namespace mindpipe::MINDPIPE_ISA
