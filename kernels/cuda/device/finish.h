#pragma once
#include <cuda_runtime.h>

#include "calls.h"

/// What follows the sums of a product where the library cannot be asked for it.
namespace mindpipe::cuda {

/// A matrix of sums in f32, f64 where the result is f64, and what becomes of it. Slots are dtypes: f64, f32,
/// bf16; none is a null pointer.
struct Finish {
  const void* sums;
  void* result;  ///< may be `sums`
  int slot;
  Curve curve;
  const void* bias;  ///< [cols]; forward only
  int bias_slot;
  void* before;  ///< forward: written, of the result's type; backward: read
  int before_slot;
  std::int64_t count, cols;
};
/// result = curve(sums + bias), before = what went into it
void finish_forward(const Finish& finish, cudaStream_t stream);
/// result = sums * curve'(before)
void finish_backward(const Finish& finish, cudaStream_t stream);

}  // namespace mindpipe::cuda
