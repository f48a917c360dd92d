#pragma once
#include "cpu/products.h"
#include "cpu/simd/attention_kernels.h"

/// The engines for bf16 units over models of these units in plain C++, which run everywhere.
namespace mindpipe {

MINDPIPE_DECLARE_KERNELS(ProductKernels, pair_model_kernels)
MINDPIPE_DECLARE_KERNELS(ProductKernels, amx_model_kernels)
MINDPIPE_DECLARE_KERNELS(AttentionKernels, pair_model_attention_kernels)
namespace avx512 {
extern const AttentionKernels amx_model_attention_kernels;  ///< wherever there is AVX-512
}

}  // namespace mindpipe
