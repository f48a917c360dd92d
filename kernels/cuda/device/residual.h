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

  template <int size>
  struct Fetched {
    Raw<T, size> x, branch;
  };
  template <int size, class Ending>
  __device__ Fetched<size> fetch_at(int64_t n, int64_t j, Ending ending) const {
    const int64_t i = n * mask.cols + j;
    return {fetch<size>(x + i, ending), fetch<size>(branch + i, ending)};
  }
  /// Writes the sum of what was fetched there, and returns it as it was rounded.
  template <int size, class Ending>
  __device__ Group<Wide<T>, size> sum_at(const Fetched<size>& fetched, int64_t n, int64_t j,
                                         Ending ending) const {
    using A = Wide<T>;
    auto sum = widened(fetched.x), added = widened(fetched.branch);
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
    store(y + n * mask.cols + j, sum, ending);
    return sum;
  }
};

}  // namespace mindpipe::cuda
