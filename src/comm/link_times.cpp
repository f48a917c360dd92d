#include "comm/link_times.h"

#include <algorithm>
#include <vector>

#include "core/clock.h"

namespace mindpipe {
namespace {

constexpr int rounds = 31;
constexpr int short_bytes = 1 << 10, long_bytes = 4 << 20;

/// Seconds that a message of so many bytes takes while another one comes back.
double median_exchange(const World& world, int bytes) {
  const int partner = world.rank ^ 1;
  std::vector<char> sent(static_cast<std::size_t>(bytes), 1), received(sent.size());
  std::vector<double> seconds;
  MPI_Barrier(world.comm);
  for (int round = 0; partner < world.size && round < rounds; ++round) {
    const std::int64_t start = now_ns();
    MPI_Sendrecv(sent.data(), bytes, MPI_BYTE, partner, 0, received.data(), bytes, MPI_BYTE, partner, 0,
                 world.comm, MPI_STATUS_IGNORE);
    seconds.push_back(seconds_since(start));
  }
  if (seconds.empty()) return 0;
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[rounds / 2];
}

}  // namespace

LinkTimes time_links(const World& world) {
  const double alone = median_exchange(world, short_bytes), long_one = median_exchange(world, long_bytes);
  if (long_one <= alone) return {};
  return {alone, (long_bytes - short_bytes) / (long_one - alone)};
}

}  // namespace mindpipe
