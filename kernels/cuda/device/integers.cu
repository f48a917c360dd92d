#include "cuda/device/group.h"
#include "cuda/gpu_operations.h"
#include "operations/integers.h"

namespace mindpipe::cuda {
namespace {

constexpr int integers_of_thread = 4;

/// totals += the whole number nearest to gradient x 2^40, gradient = 0. Marks are whole numbers, which may be
/// added in any order; only a thread that finds some adds them.
__global__ void add_integer_groups(float* gradient, int64_t* totals, unsigned long long* marks, int64_t count,
                                   bool wide) {
  constexpr int size = integers_of_thread;
  for_group<size>(count, wide, [&](int64_t i, auto ending) {
    const Raw<float, size> g = fetch<size>(gradient + i, ending);
    Raw<int64_t, size> sums = fetch<size>(totals + i, ending);
    int outside = 0;
#pragma unroll
    for (int k = 0; k < size; ++k) {
      const bool fits = fabsf(g.x[k]) <= static_cast<float>(IntegerGradients::most);  // which no NaN does
      outside += fits ? 0 : 1;
      sums.x[k] += fits ? __float2ll_rn(g.x[k] * static_cast<float>(IntegerGradients::per_one)) : 0;
    }
    write<size>(sums.x, totals + i, ending);
    const Raw<float, size> zeros{};
    write<size>(zeros.x, gradient + i, ending);
    if (outside != 0) atomicAdd(marks, static_cast<unsigned long long>(outside));
  });
}

/// gradient = totals x 2^-40, or NaN where there are marks; totals = 0. The conversion rounds, once; the
/// product does not.
__global__ void from_integer_groups(int64_t* totals, const int64_t* marks, float* gradient, int64_t count,
                                    bool wide) {
  constexpr int size = integers_of_thread;
  const float factor =
      *marks == 0 ? 1 / static_cast<float>(IntegerGradients::per_one) : __uint_as_float(0x7fc00000u);
  for_group<size>(count, wide, [&](int64_t i, auto ending) {
    const Raw<int64_t, size> sums = fetch<size>(totals + i, ending);
    Raw<float, size> g;
#pragma unroll
    for (int k = 0; k < size; ++k) g.x[k] = static_cast<float>(sums.x[k]) * factor;
    write<size>(g.x, gradient + i, ending);
    const Raw<int64_t, size> zeros{};
    write<size>(zeros.x, totals + i, ending);
  });
}

}  // namespace
}  // namespace mindpipe::cuda

namespace mindpipe {

using namespace cuda;

void GpuOperations::run(const AddAsIntegersOperands& o) {
  launch(stream(), grid_of_groups(o.gradient.count(), integers_of_thread), add_integer_groups,
         o.gradient.data, o.totals.data, o.marks.data, o.gradient.count(),
         aligned(o.gradient.data, o.totals.data));
}

void GpuOperations::run(const FromIntegersOperands& o) {
  launch(stream(), grid_of_groups(o.totals.count(), integers_of_thread), from_integer_groups, o.totals.data,
         o.marks.data, o.gradient.data, o.totals.count(), aligned(o.totals.data, o.gradient.data));
}

}  // namespace mindpipe
