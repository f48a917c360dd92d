#include "cpu/simd/integer_kernels.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

using std::int64_t;

/// An f64 holds gradient x 2^40 exactly. Beside 1.5 x 2^52 it has no bits left for a fraction, so the
/// addition rounds it to a whole number, ties to even, which then stands in the low bits.
int64_t add_as_integers(float* gradient, int64_t* totals, int64_t first, int64_t last) {
  constexpr int64_t block = 4096;
  constexpr float most = static_cast<float>(IntegerGradients::most);
  constexpr double per_one = static_cast<double>(IntegerGradients::per_one), no_fraction = 0x1.8p52;
  static_assert(static_cast<double>(IntegerGradients::most) * per_one < 0x1p51);
  int64_t outside = 0;
  for (int64_t begin = first; begin < last; begin += block) {
    const int64_t end = last - begin < block ? last : begin + block;
    std::uint32_t here = 0;
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) {
      const bool fits = __builtin_fabsf(gradient[i]) <= most;  // which no NaN does
      const double whole = static_cast<double>(fits ? gradient[i] : 0.0f) * per_one + no_fraction;
      here += fits ? 0u : 1u;
      totals[i] += __builtin_bit_cast(int64_t, whole) - __builtin_bit_cast(int64_t, no_fraction);
      gradient[i] = 0;
    }
    outside += here;
  }
  return outside;
}

/// The conversion rounds, once; a factor that is a power of two does not.
void from_integers(int64_t* totals, float factor, float* gradient, int64_t first, int64_t last) {
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) {
    gradient[i] = static_cast<float>(totals[i]) * factor;
    totals[i] = 0;
  }
}

void add_integers(const void* a, const void* b, void* sum, int64_t first, int64_t last) {
  const int64_t *x = static_cast<const int64_t*>(a), *y = static_cast<const int64_t*>(b);
  int64_t* out = static_cast<int64_t*>(sum);
#pragma GCC ivdep
  for (int64_t i = first; i < last; ++i) out[i] = x[i] + y[i];
}

}  // namespace

const IntegerKernels integer_kernels = {add_as_integers, from_integers, add_integers};

}  // namespace mindpipe::MINDPIPE_ISA
