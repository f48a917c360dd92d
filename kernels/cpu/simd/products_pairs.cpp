#include "cpu/products.h"

#if MINDPIPE_ISA_LEVEL == 2
#include "cpu/simd/products_pairs.h"

namespace mindpipe::MINDPIPE_ISA {

const ProductKernels pair_kernels = products::pairs<products::PairInstruction>;

}  // namespace mindpipe::MINDPIPE_ISA
#endif
