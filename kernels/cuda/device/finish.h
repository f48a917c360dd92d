#pragma once
#include <cuda_runtime.h>

#include "operations/calls.h"

/// What follows the sums of a product where the library cannot be asked for it.
namespace mindpipe::cuda {

/// A matrix of sums in f32, f64 where the result is f64, and what becomes of it. Types are 0 for f64, 1
/// for f32, 2 for bf16; none is a null pointer.
struct Finish {
  const void* sums;
  void* result;  ///< may be `sums`
  int result_type;
  Activation activation;
  const void* bias;  ///< [cols]; forward only
  int bias_type;
  void* before;  ///< forward: written, of the result's type; backward: read
  int before_type;
  std::int64_t count, cols;
};
/// result = activation(sums + bias), before = what went into it
void finish_forward(const Finish& finish, cudaStream_t stream);
/// result = sums * activation'(before)
void finish_backward(const Finish& finish, cudaStream_t stream);

}  // namespace mindpipe::cuda
