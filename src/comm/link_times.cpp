#include "comm/link_times.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/clock.h"

namespace mindpipe {
namespace {

constexpr int rounds = 31;
constexpr int short_bytes = 1 << 10, long_bytes = 4 << 20;

/// Seconds that a message of so many bytes takes while another one comes back.
double exchange(const World& world, int partner, const std::vector<char>& sent, std::vector<char>& received,
                int bytes) {
  const std::int64_t start = now_ns();
  MPI_CHECK(MPI_Sendrecv(sent.data(), bytes, MPI_BYTE, partner, 0, received.data(), bytes, MPI_BYTE, partner,
                         0, world.comm, MPI_STATUS_IGNORE));
  return seconds_since(start);
}

/// The shortest of short and of long exchanges, which take turns: other processes hold up many of them where
/// ranks share processors, and a median of short ones could then be above that of long ones.
LinkTimes times_with(const World& world, int partner) {
  MPI_CHECK(MPI_Barrier(world.comm));
  if (partner < 0) return {};
  const std::vector<char> sent(long_bytes, 1);
  std::vector<char> received(long_bytes);
  double short_one = std::numeric_limits<double>::infinity(), long_one = short_one;
  for (int round = 0; round < rounds; ++round) {
    short_one = std::min(short_one, exchange(world, partner, sent, received, short_bytes));
    long_one = std::min(long_one, exchange(world, partner, sent, received, long_bytes));
  }
  return link_times_of({short_bytes, short_one}, {long_bytes, long_one});
}

}  // namespace

LinkTimes link_times_of(const TimedMessage& short_one, const TimedMessage& long_one) {
  if (long_one.seconds <= short_one.seconds) return {0, long_one.bytes / long_one.seconds};
  return {short_one.seconds, (long_one.bytes - short_one.bytes) / (long_one.seconds - short_one.seconds)};
}

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
