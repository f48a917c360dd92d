#pragma once
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace mindpipe {

/// Calls work(thread, task) once for each task. A thread does its own share first, in order, and then what
/// others have not begun of theirs: a processor that is slower, or shared with another program, holds up a
/// task and not all. Only for work whose results do not depend on who does it.
template <class Work>
void in_shares(int threads, int tasks, const Work& work) {
  constexpr int most = 256;  // shares; more threads than that have none of their own
  const int shares = std::min(threads, most);
  if (shares <= 1) {
    for (int task = 0; task < tasks; ++task) work(0, task);
    return;
  }
  struct alignas(64) Share {
    int next;
  };
  Share share[most];
  const auto first_of = [=](int owner) { return static_cast<int>(std::int64_t{tasks} * owner / shares); };
  for (int owner = 0; owner < shares; ++owner) share[owner].next = first_of(owner);
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    for (int k = 0; k < shares; ++k) {
      const int owner = (thread + k) % shares, end = first_of(owner + 1);
      const std::atomic_ref<int> next(share[owner].next);
      for (int task = next++; task < end; task = next++) work(thread, task);
    }
  }
}

/// Calls work(first, last) so that the ranges cover [0, count) once, none much smaller than `grain`.
/// Only for work whose results do not depend on where the ranges end.
template <class Work>
void in_ranges(int threads, std::int64_t count, std::int64_t grain, const Work& work) {
  constexpr std::int64_t tasks_of_thread = 4;
  const std::int64_t most = (count + grain - 1) / std::max<std::int64_t>(grain, 1),
                     team = std::min<std::int64_t>(threads, most);
  if (team <= 1) {
    if (count > 0) work(std::int64_t{0}, count);
    return;
  }
  const std::int64_t tasks = std::min(team * tasks_of_thread, most);
  in_shares(static_cast<int>(team), static_cast<int>(tasks),
            [&](int, int task) { work(task * count / tasks, (task + 1) * count / tasks); });
}

/// Elements below which a second thread costs more than it brings.
inline constexpr std::int64_t element_grain = 16384;
inline std::int64_t row_grain(std::int64_t cols) {
  return std::max<std::int64_t>(1, element_grain / std::max<std::int64_t>(cols, 1));
}

}  // namespace mindpipe
