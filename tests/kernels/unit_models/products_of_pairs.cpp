#include "cpu/simd/products_pairs.h"
#include "kernels/unit_models/pairs.h"
#include "kernels/unit_models/unit_models.h"

namespace mindpipe::MINDPIPE_ISA {

const ProductKernels pair_model_kernels = products::pairs<products::PairModel>;

}  // namespace mindpipe::MINDPIPE_ISA
