#pragma once
#include "cuda/device/group.h"
#include "cuda/device/philox.h"

namespace mindpipe::cuda {

/// y = x + mask (branch + bias) / (1 - p), a group at a time; the bias may be none, y may be x
template <class T>
struct Residual {
  const T *x, *branch, *bias;
  MaskRows mask;
  T* y;

  template <int size, class Ending>
  __device__ Group<Wide<T>, size> at(int64_t n, int64_t j, Ending ending) const {
    using A = Wide<T>;
    const int64_t i = n * mask.cols + j;
    auto sum = load<size>(x + i, ending);
    auto added = load<size>(branch + i, ending);
    if (bias != nullptr) {
      const auto offset = load<size>(bias + j, ending);
#pragma unroll
      for (int k = 0; k < size; ++k) added.x[k] += offset.x[k];
    }
    if (mask.threshold != 0) {
      const A scale = static_cast<A>(mask.scale);
      const Kept<size> mine = kept<size>(mask, n, j);
#pragma unroll
      for (int k = 0; k < size; ++k) added.x[k] = mine.keep[k] ? added.x[k] * scale : A(0);
    }
#pragma unroll
    for (int k = 0; k < size; ++k) sum.x[k] = rounded<T>(sum.x[k] + added.x[k]);
    store(y + i, sum, ending);
    return sum;
  }
};

}  // namespace mindpipe::cuda
