#include "cpu/simd/products_engine.h"

namespace mindpipe::MINDPIPE_ISA {
namespace products {

void run_singles(const Product& product, const ProductPart& part, void* workspace) {
  (product.a.bf16 ? run<Singles<std::uint16_t>> : run<Singles<float>>)(product, part, workspace);
}

}  // namespace products

extern const ProductKernels product_kernels;
const ProductKernels product_kernels{products::tile_rows, products::tile_cols,
                                     products::workspace_bytes<depth_block>, products::run_singles};

}  // namespace mindpipe::MINDPIPE_ISA
