#include "comm/pings.h"

#include <set>

namespace mindpipe {
namespace {

constexpr int rounds = 50, tag = 47;

void ask(const World& world, int rank, const std::function<std::int64_t()>& clock) {
  std::vector<PingTimes> all(rounds);
  for (PingTimes& ping : all) {
    ping[0] = clock();
    MPI_CHECK(MPI_Send(ping.data(), 1, MPI_INT64_T, rank, tag, world.comm));
    MPI_CHECK(MPI_Recv(&ping[1], 2, MPI_INT64_T, rank, tag, world.comm, MPI_STATUS_IGNORE));
    ping[3] = clock();
  }
  MPI_CHECK(MPI_Send(all.data(), 4 * rounds, MPI_INT64_T, rank, tag, world.comm));
}

std::vector<PingTimes> answer(const World& world, const std::function<std::int64_t()>& clock) {
  std::vector<PingTimes> all(rounds);
  for (int round = 0; round < rounds; ++round) {
    PingTimes ping{};
    MPI_CHECK(MPI_Recv(ping.data(), 1, MPI_INT64_T, 0, tag, world.comm, MPI_STATUS_IGNORE));
    ping[1] = ping[2] = clock();
    MPI_CHECK(MPI_Send(&ping[1], 2, MPI_INT64_T, 0, tag, world.comm));
  }
  MPI_CHECK(MPI_Recv(all.data(), 4 * rounds, MPI_INT64_T, 0, tag, world.comm, MPI_STATUS_IGNORE));
  return all;
}

}  // namespace

std::vector<PingTimes> ping_hosts(const World& world, const std::vector<std::string>& hosts,
                                  const std::function<std::int64_t()>& clock) {
  std::vector<PingTimes> asked;
  std::set<std::string> known{hosts.front()};
  for (int rank = 1; rank < world.size; ++rank) {
    if (!known.insert(hosts[rank]).second) continue;
    if (world.rank == 0) ask(world, rank, clock);
    else if (world.rank == rank) asked = answer(world, clock);
  }
  return asked;
}

}  // namespace mindpipe
