#pragma once
#include "cpu/products.h"
#include "cpu/simd/attention_kernels.h"

/// The engines for bf16 units over models of these units in plain C++, which run wherever a multiply-add is
/// one operation.
namespace mindpipe {

constexpr Isa sets_with_models[] = {Isa::avx2, Isa::avx512};
namespace avx2 {
extern const ProductKernels pair_model_kernels, amx_model_kernels;
extern const AttentionKernels pair_model_attention_kernels;
}  // namespace avx2
namespace avx512 {
extern const ProductKernels pair_model_kernels, amx_model_kernels;
extern const AttentionKernels pair_model_attention_kernels, amx_model_attention_kernels;
}  // namespace avx512

}  // namespace mindpipe

/// The kernels of that name over a model, of a set that has models.
#define MINDPIPE_PICK_MODEL(isa, name) \
  ((isa) == ::mindpipe::Isa::avx512 ? ::mindpipe::avx512::name : ::mindpipe::avx2::name)
