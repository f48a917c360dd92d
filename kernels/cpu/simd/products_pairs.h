#pragma once
#include "cpu/simd/products_engine.h"

namespace mindpipe::MINDPIPE_ISA::products {

/// The engine whose words are pairs, multiplied by this arithmetic.
template <class Arithmetic>
constexpr ProductKernels pairs{tile_rows, tile_cols, workspace_bytes<2 * depth_block>,
                               run<Pairs<Arithmetic>>};

}  // namespace mindpipe::MINDPIPE_ISA::products
