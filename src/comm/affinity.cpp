#include "comm/affinity.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace mindpipe {
namespace {

/// The ranks of one node taken together.
struct Node {
  std::string host;
  std::vector<int> ranks;
  int threads = 0;
  cpu_set_t processors = {};
};

std::vector<Node> nodes_of(const std::vector<RankPlace>& places) {
  std::vector<Node> nodes;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    auto node = std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.host == places[rank].host; });
    if (node == nodes.end()) node = nodes.insert(nodes.end(), Node{places[rank].host, {}});
    node->ranks.push_back(static_cast<int>(rank));
    node->threads += places[rank].threads;
    CPU_OR(&node->processors, &node->processors, &places[rank].processors);
  }
  return nodes;
}

/// "0-15,32-47"
std::string text_of(const cpu_set_t& processors) {
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &processors)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &processors)) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first) + (last > first ? fmt::format("-{}", last) : "");
    first = last;
  }
  return text;
}

/// Which processors the ranks of a node may use: all the same, or each its own.
std::string affinity_of(const Node& node, const std::vector<RankPlace>& places) {
  constexpr std::size_t most = 8;
  const auto may_use_all = [&](int rank) { return CPU_EQUAL(&places[static_cast<std::size_t>(rank)].processors, &node.processors); };
  if (std::all_of(node.ranks.begin(), node.ranks.end(), may_use_all)) return "on " + text_of(node.processors);
  std::string text;
  for (std::size_t i = 0; i < std::min(most, node.ranks.size()); ++i)
    text += fmt::format("{}rank {} on {}", i == 0 ? "" : ", ", node.ranks[i],
                        text_of(places[static_cast<std::size_t>(node.ranks[i])].processors));
  return node.ranks.size() > most ? text + ", ..." : text;
}

const char* plural(int n) { return n == 1 ? "" : "s"; }

/// What else helps where processors are too few: nothing, when every rank has one thread already.
std::string with_fewer_threads(const Node& node, int processors) {
  const int ranks = static_cast<int>(node.ranks.size());
  return node.threads == ranks ? "" : fmt::format(", or set device.threads={}", std::max(1, processors / ranks));
}

}  // namespace

RankPlace place_of_this_rank(int threads) {
  RankPlace place;
  std::strncpy(place.host, host_name().c_str(), sizeof place.host - 1);
  place.process = static_cast<int>(getpid());
  place.threads = threads;
  MP_CHECK(sched_getaffinity(0, sizeof place.processors, &place.processors) == 0, "sched_getaffinity failed: {}", std::strerror(errno));
  return place;
}

std::vector<RankPlace> all_places(MPI_Comm ranks, const RankPlace& mine) {
  int size = 1;
  MPI_CHECK(MPI_Comm_size(ranks, &size));
  std::vector<RankPlace> places(static_cast<std::size_t>(size));
  MPI_CHECK(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, ranks));
  return places;
}

int fair_threads(const std::vector<RankPlace>& places, int rank) {
  if (const char* said = std::getenv("OMP_NUM_THREADS"); said != nullptr && std::atoi(said) > 0) return std::atoi(said);
  const RankPlace& mine = places[static_cast<std::size_t>(rank)];
  const auto shares = [&](const RankPlace& other) {
    cpu_set_t both;
    CPU_AND(&both, &mine.processors, &other.processors);
    return std::string(mine.host) == other.host && CPU_COUNT(&both) > 0;
  };
  const auto sharing = static_cast<int>(std::count_if(places.begin(), places.end(), shares));
  return std::max(1, mine.processor_count() / std::max(1, sharing));
}

std::string affinity_report(const std::vector<RankPlace>& places) {
  std::string text;
  for (const Node& node : nodes_of(places)) {
    const int processors = CPU_COUNT(&node.processors);
    text += fmt::format("{}: {} rank{} ({}{}), {} processor{}, {} thread{}; {}\n", node.host, node.ranks.size(),
                        plural(static_cast<int>(node.ranks.size())), node.ranks.front(),
                        node.ranks.size() > 1 ? fmt::format(" to {}", node.ranks.back()) : "", processors, plural(processors), node.threads,
                        plural(node.threads), affinity_of(node, places));
    bool bound_too_tightly = false;
    for (int rank : node.ranks) {
      const RankPlace& place = places[static_cast<std::size_t>(rank)];
      if (place.threads <= place.processor_count()) continue;
      bound_too_tightly = true;
      text += fmt::format(
          "warning: rank {} on {} runs {} threads but may use {} processor{} (all its threads share them); start with mpirun --bind-to "
          "none or srun --cpus-per-task={}, or set device.threads={}\n",
          rank, node.host, place.threads, place.processor_count(), plural(place.processor_count()), place.threads, place.processor_count());
    }
    if (!bound_too_tightly && node.threads > processors)
      text +=
          fmt::format("warning: {} has {} threads on {} processor{}: ranks will wait for each other's turns; start fewer ranks there{}\n",
                      node.host, node.threads, processors, plural(processors), with_fewer_threads(node, processors));
  }
  return text;
}

bool is_crowded(const std::vector<RankPlace>& places, int rank) {
  for (const Node& node : nodes_of(places))
    if (node.host == places[static_cast<std::size_t>(rank)].host) return node.threads > CPU_COUNT(&node.processors);
  return false;
}

}  // namespace mindpipe
