#include "comm/affinity.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/ranges.h>

namespace mindpipe {
namespace {

/// Ranks of one node that have these processors and no others.
struct Pool {
  std::vector<int> ranks;
  int threads = 0;
  cpu_set_t processors = {};

  bool is_crowded() const { return threads > CPU_COUNT(&processors); }
};

struct Node : Pool {
  std::string host;
};

bool contains(const cpu_set_t& all, const cpu_set_t& some) {
  cpu_set_t both;
  CPU_AND(&both, &all, &some);
  return CPU_EQUAL(&both, &some);
}

bool overlap(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t both;
  CPU_AND(&both, &a, &b);
  return CPU_COUNT(&both) > 0;
}

std::vector<Node> nodes_of(const std::vector<RankPlace>& places) {
  std::vector<Node> nodes;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.host == places[rank].host; });
    if (node == nodes.end()) node = nodes.insert(nodes.end(), Node{{}, places[rank].host});
    node->ranks.push_back(static_cast<int>(rank));
    node->threads += places[rank].threads;
    CPU_OR(&node->processors, &node->processors, &places[rank].processors);
  }
  return nodes;
}

/// The node itself and whatever less of it some of its ranks are bound to, the tightest first.
std::vector<Pool> pools_of(const Node& node, const std::vector<RankPlace>& places) {
  std::vector<Pool> pools{node};
  for (int rank : node.ranks) {
    Pool pool{{}, 0, places[static_cast<std::size_t>(rank)].processors};
    if (std::any_of(pools.begin(), pools.end(),
                    [&](const Pool& p) { return CPU_EQUAL(&p.processors, &pool.processors); }))
      continue;
    for (int other : node.ranks) {
      const RankPlace& place = places[static_cast<std::size_t>(other)];
      if (!contains(pool.processors, place.processors)) continue;
      pool.ranks.push_back(other);
      pool.threads += place.threads;
    }
    pools.push_back(pool);
  }
  std::stable_sort(pools.begin(), pools.end(), [](const Pool& a, const Pool& b) {
    return CPU_COUNT(&a.processors) < CPU_COUNT(&b.processors);
  });
  return pools;
}

/// Text of a set of processors: "0-15,32-47".
std::string text_of(const cpu_set_t& processors) {
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &processors)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &processors)) ++last;
    text +=
        fmt::format("{}{}", text.empty() ? "" : ",", first) + (last > first ? fmt::format("-{}", last) : "");
    first = last;
  }
  return text;
}

constexpr std::size_t most = 8;  ///< ranks that a sentence names

/// Says which processors the ranks of a node may use: all the same, or each its own.
std::string affinity_of(const Node& node, const std::vector<RankPlace>& places) {
  const auto may_use_all = [&](int rank) {
    return CPU_EQUAL(&places[static_cast<std::size_t>(rank)].processors, &node.processors);
  };
  if (std::all_of(node.ranks.begin(), node.ranks.end(), may_use_all)) return "on " + text_of(node.processors);
  std::string text;
  for (std::size_t i = 0; i < std::min(most, node.ranks.size()); ++i)
    text += fmt::format("{}rank {} on {}", i == 0 ? "" : ", ", node.ranks[i],
                        text_of(places[static_cast<std::size_t>(node.ranks[i])].processors));
  return node.ranks.size() > most ? text + ", ..." : text;
}

const char* plural(int n) { return n == 1 ? "" : "s"; }

/// End of a sentence, to take fewer threads where processors are too few; empty when every rank has one
/// thread already.
std::string with_fewer_threads(const Pool& pool) {
  const int ranks = static_cast<int>(pool.ranks.size());
  return pool.threads == ranks
             ? ""
             : fmt::format(", or set device.threads={}", std::max(1, CPU_COUNT(&pool.processors) / ranks));
}

/// Text of a list of ranks: "rank 3", "ranks 0, 1".
std::string names_of(const std::vector<int>& ranks) {
  const std::vector<int> named(ranks.begin(),
                               ranks.begin() + static_cast<std::ptrdiff_t>(std::min(most, ranks.size())));
  return fmt::format("rank{} {}{}", plural(static_cast<int>(ranks.size())), fmt::join(named, ", "),
                     ranks.size() > most ? ", ..." : "");
}

bool is_tight(const RankPlace& place) { return place.threads > place.processor_count(); }

/// Warning, with what to do, about ranks of a node that are alike and have, each by itself, fewer processors
/// than threads.
std::string tightness_of(const std::vector<int>& ranks, const RankPlace& place) {
  const int processors = place.processor_count(), number = static_cast<int>(ranks.size());
  const bool is_bound = processors < place.processors_there;
  const std::string advice =
      is_bound ? fmt::format(
                     "start with mpirun --bind-to none or srun --cpus-per-task={}, or set device.threads={}",
                     place.threads, processors)
      : number > 1
          ? fmt::format("set device.threads={}, or start fewer ranks there", std::max(1, processors / number))
          : fmt::format("set device.threads={}", processors);
  return fmt::format(
      "warning: {} on {} run{} {} threads{} but may use {} processor{}{} (all its threads share them); {}\n",
      names_of(ranks), place.host, number == 1 ? "s" : "", place.threads, number == 1 ? "" : " each",
      processors, plural(processors), is_bound ? "" : ", all of that machine", advice);
}

/// The tight ranks of a node in groups of those with as many threads and processors.
std::vector<std::vector<int>> tight_ranks(const Node& node, const std::vector<RankPlace>& places) {
  std::vector<std::vector<int>> groups;
  for (int rank : node.ranks) {
    const RankPlace& place = places[static_cast<std::size_t>(rank)];
    if (!is_tight(place)) continue;
    const auto alike = std::find_if(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
      const RankPlace& other = places[static_cast<std::size_t>(group.front())];
      return other.threads == place.threads && other.processor_count() == place.processor_count();
    });
    if (alike == groups.end()) groups.push_back({rank});
    else alike->push_back(rank);
  }
  return groups;
}

/// Warning, with what to do, about a pool that has more threads than processors, though none of its ranks has
/// by itself.
std::string crowd_in(const Pool& pool, const Node& node) {
  const int processors = CPU_COUNT(&pool.processors);
  const bool is_bound = processors < CPU_COUNT(&node.processors);
  const std::string who =
      is_bound ? fmt::format("on {}, the {} have", node.host, names_of(pool.ranks)) : node.host + " has";
  return fmt::format(
      "warning: {} {} threads on {} processor{}{}: ranks will wait for each other's turns; start {}{}\n", who,
      pool.threads, processors, plural(processors), is_bound ? " (" + text_of(pool.processors) + ")" : "",
      is_bound ? "with mpirun --bind-to none" : "fewer ranks there", with_fewer_threads(pool));
}

}  // namespace

RankPlace place_of_this_rank(int threads) {
  RankPlace place;
  std::strncpy(place.host, host_name().c_str(), sizeof place.host - 1);
  place.process = static_cast<int>(getpid());
  place.threads = threads;
  place.processors_there = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  MP_CHECK(sched_getaffinity(0, sizeof place.processors, &place.processors) == 0,
           "sched_getaffinity failed: {}", std::strerror(errno));
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
  if (const char* said = std::getenv("OMP_NUM_THREADS"); said != nullptr && std::atoi(said) > 0)
    return std::atoi(said);
  const RankPlace& mine = places[static_cast<std::size_t>(rank)];
  const auto shares = [&](const RankPlace& other) {
    return std::string(mine.host) == other.host && overlap(mine.processors, other.processors);
  };
  const auto sharing = static_cast<int>(std::count_if(places.begin(), places.end(), shares));
  return std::max(1, mine.processor_count() / std::max(1, sharing));
}

std::string affinity_report(const std::vector<RankPlace>& places) {
  std::string text;
  for (const Node& node : nodes_of(places)) {
    const int processors = CPU_COUNT(&node.processors);
    text += fmt::format("{}: {} rank{} ({}{}), {} processor{}, {} thread{}; {}\n", node.host,
                        node.ranks.size(), plural(static_cast<int>(node.ranks.size())), node.ranks.front(),
                        node.ranks.size() > 1 ? fmt::format(" to {}", node.ranks.back()) : "", processors,
                        plural(processors), node.threads, plural(node.threads), affinity_of(node, places));
    cpu_set_t spoken_of = {};
    const auto speak_of = [&](const cpu_set_t& processors) { CPU_OR(&spoken_of, &spoken_of, &processors); };
    for (const std::vector<int>& ranks : tight_ranks(node, places)) {
      text += tightness_of(ranks, places[static_cast<std::size_t>(ranks.front())]);
      for (int rank : ranks) speak_of(places[static_cast<std::size_t>(rank)].processors);
    }
    for (const Pool& pool : pools_of(node, places)) {
      if (!pool.is_crowded() || overlap(pool.processors, spoken_of)) continue;
      text += crowd_in(pool, node);
      speak_of(pool.processors);
    }
  }
  return text;
}

void require_sensible(int threads, const RankPlace& place) {
  constexpr int most = 16;
  const int processors = place.processor_count();
  MP_REQUIRE(threads <= most * processors, Exit::bad_configuration,
             "device.threads (or OMP_NUM_THREADS) is {}, but a rank on {} may use {} processor{} (at most {} "
             "threads: more would only wait for "
             "each other's turns); set device.threads={}, or 0 to take what there is, or give ranks more "
             "with mpirun --bind-to none or srun "
             "--cpus-per-task",
             threads, place.host, processors, plural(processors), most * processors, processors);
}

bool is_crowded(const std::vector<RankPlace>& places, int rank) {
  const RankPlace& mine = places[static_cast<std::size_t>(rank)];
  for (const Node& node : nodes_of(places))
    if (node.host == mine.host)
      for (const Pool& pool : pools_of(node, places))
        if (pool.is_crowded() && overlap(pool.processors, mine.processors)) return true;
  return false;
}

}  // namespace mindpipe
