#pragma once
#include <sched.h>

#include <string>
#include <vector>

#include "comm/mpi.h"

namespace mindpipe {

/// Machine, process and processors of one rank.
struct RankPlace {
  char host[64] = "";
  int process = 0, threads = 1;
  int processors_there = 0;   ///< all of the machine's, whoever may use them
  cpu_set_t processors = {};  ///< processors that the rank may use
  int processor_count() const { return CPU_COUNT(&processors); }
};

RankPlace place_of_this_rank(int threads);
/// Every rank's place, by rank. Collective over `ranks`.
std::vector<RankPlace> all_places(MPI_Comm ranks, const RankPlace& mine);
/// Number of threads that rank `rank` can have to itself: OMP_NUM_THREADS where the user said so, else its
/// processors divided among the ranks that may use the same ones.
int fair_threads(const std::vector<RankPlace>& places, int rank);
/// Report with a line for each node, and a warning where ranks by themselves, ranks bound to the same
/// processors, or a node have more threads than processors.
std::string affinity_report(const std::vector<RankPlace>& places);
/// Refuses more than 16 threads for each processor that a rank may use: they would only wait for each other.
void require_sensible(int threads, const RankPlace& place);
/// Whether this rank shares processors with more threads than there are of them.
bool is_crowded(const std::vector<RankPlace>& places, int rank);

}  // namespace mindpipe
