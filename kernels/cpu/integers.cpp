#include "operations/integers.h"

#include <limits>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/integer_kernels.h"

namespace mindpipe {

void CpuBackend::run(const AddAsIntegersOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, integer_kernels).add_as;
  std::atomic<std::int64_t> outside{0};
  in_ranges(threads_, o.gradient.count(), element_grain, [&](auto first, auto last) {
    outside += kernel(o.gradient.as<float>(), o.totals.as<std::int64_t>(), first, last);
  });
  *o.marks.as<std::int64_t>() += outside;
}

void CpuBackend::run(const FromIntegersOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, integer_kernels).from;
  const float factor = *o.marks.as<std::int64_t>() == 0 ? 1 / static_cast<float>(IntegerGradients::per_one)
                                                        : std::numeric_limits<float>::quiet_NaN();
  in_ranges(threads_, o.totals.count(), element_grain, [&](auto first, auto last) {
    kernel(o.totals.as<std::int64_t>(), factor, o.gradient.as<float>(), first, last);
  });
}

}  // namespace mindpipe
