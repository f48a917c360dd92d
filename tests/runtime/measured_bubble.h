#pragma once
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "core/clock.h"
#include "runtime/worker.h"

namespace mindpipe {

/// The bubble of this rank, the median of the steps that the recorder holds.
inline double measured_bubble(Worker& worker) {
  const Recorder& recorder = worker.executor().recorder(worker.training());
  const auto& list = worker.training().list;
  std::vector<double> bubbles;
  for (std::size_t step = 0; step < recorder.held(); ++step) {
    std::int64_t busy = 0, from = now_ns(), to = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& times = recorder.times(step, i);
      if (is_work(list[i])) busy += times.end - times.start;
      from = std::min(from, times.start);
      to = std::max(to, times.end);
    }
    // Ranks of one node share their clock.
    MPI_Allreduce(MPI_IN_PLACE, &from, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &to, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    bubbles.push_back(1 - static_cast<double>(busy) / static_cast<double>(to - from));
  }
  std::nth_element(bubbles.begin(), bubbles.begin() + bubbles.size() / 2, bubbles.end());
  return bubbles[bubbles.size() / 2];
}

}  // namespace mindpipe
