#include "comm/link_times.h"

#include <algorithm>
#include <map>

#include "core/clock.h"

namespace mindpipe {
namespace {

constexpr int rounds = 31;
constexpr int short_bytes = 1 << 10, long_bytes = 4 << 20;

/// Seconds that a message of so many bytes takes while another one comes back; 0: nobody to exchange with.
double median_exchange(const World& world, int partner, int bytes) {
  std::vector<char> sent(static_cast<std::size_t>(bytes), 1), received(sent.size());
  std::vector<double> seconds;
  MPI_CHECK(MPI_Barrier(world.comm));
  for (int round = 0; partner >= 0 && round < rounds; ++round) {
    const std::int64_t start = now_ns();
    MPI_CHECK(MPI_Sendrecv(sent.data(), bytes, MPI_BYTE, partner, 0, received.data(), bytes, MPI_BYTE,
                           partner, 0, world.comm, MPI_STATUS_IGNORE));
    seconds.push_back(seconds_since(start));
  }
  if (seconds.empty()) return 0;
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[rounds / 2];
}

LinkTimes times_with(const World& world, int partner) {
  const double alone = median_exchange(world, partner, short_bytes),
               long_one = median_exchange(world, partner, long_bytes);
  if (long_one <= alone) return {};
  return {alone, (long_bytes - short_bytes) / (long_one - alone)};
}

}  // namespace

LinkPartners link_partners(const std::vector<int>& nodes) {
  std::map<int, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    ranks_of[nodes[rank]].push_back(static_cast<int>(rank));
  LinkPartners partners{std::vector<int>(nodes.size(), -1), std::vector<int>(nodes.size(), -1)};
  const auto pair = [](std::vector<int>& partner, int one, int other) {
    partner[one] = other;
    partner[other] = one;
  };
  const std::vector<int>* before = nullptr;  // a node that has no partner yet
  for (const auto& [node, ranks] : ranks_of) {
    for (std::size_t place = 1; place < ranks.size(); place += 2)
      pair(partners.within, ranks[place - 1], ranks[place]);
    if (before == nullptr) {
      before = &ranks;
      continue;
    }
    for (std::size_t place = 0; place < std::min(before->size(), ranks.size()); ++place)
      pair(partners.between, (*before)[place], ranks[place]);
    before = nullptr;
  }
  return partners;
}

NodeLinkTimes time_links(const World& world, const std::vector<int>& nodes) {
  const LinkPartners partners = link_partners(nodes);
  return {times_with(world, partners.within[world.rank]), times_with(world, partners.between[world.rank])};
}

}  // namespace mindpipe
