#pragma once
#include <algorithm>
#include <cstdint>

namespace mindpipe {

/// Calls work(first, last) so that the ranges cover [0, count) once, one range for each thread and none much smaller than `grain`.
/// Only for work whose results do not depend on where the ranges end.
template <class Work>
void in_ranges(int threads, std::int64_t count, std::int64_t grain, const Work& work) {
  const std::int64_t pieces = std::min<std::int64_t>(threads, (count + grain - 1) / std::max<std::int64_t>(grain, 1));
  if (pieces <= 1) {
    if (count > 0) work(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(pieces)) schedule(static, 1)
  for (std::int64_t i = 0; i < pieces; ++i) work(i * count / pieces, (i + 1) * count / pieces);
}

/// Elements below which a second thread costs more than it brings.
inline constexpr std::int64_t element_grain = 16384;
inline std::int64_t row_grain(std::int64_t cols) { return std::max<std::int64_t>(1, element_grain / std::max<std::int64_t>(cols, 1)); }

}  // namespace mindpipe
