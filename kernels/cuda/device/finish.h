#pragma once
#include <cuda_runtime.h>

#include "backend.h"

/// What follows the sums of a product where the library cannot be asked for it. Pointers with dtypes; sums are f32 (f64 beside f64).
namespace mindpipe::cuda {

/// y = activation(sums + bias), before = what went into it unless null; sums may be y.
void finish_forward(const Tensor& sums, const Tensor& bias, Activation activation, const Tensor& before, const Tensor& y, cudaStream_t stream);
/// dx = sums * activation'(before); sums may be dx.
void finish_backward(const Tensor& sums, Activation activation, const Tensor& before, const Tensor& dx, cudaStream_t stream);

}  // namespace mindpipe::cuda
