#pragma once
#include <sched.h>

#include <string>
#include <vector>

#include "comm/mpi.h"

namespace mindpipe {

/// Where one rank runs and on how many processors.
struct RankPlace {
  char host[64] = "";
  int threads = 1;
  cpu_set_t processors = {};  ///< which ones the rank may use
  int processor_count() const { return CPU_COUNT(&processors); }
};

RankPlace place_of_this_rank(int threads);
/// Every rank's place, by rank. Collective over `ranks`.
std::vector<RankPlace> all_places(MPI_Comm ranks, const RankPlace& mine);
/// A line for each node, and a warning for each rank or node with more threads than processors.
std::string affinity_report(const std::vector<RankPlace>& places);
/// Whether the threads of all ranks on this rank's node outnumber the processors they may use.
bool is_crowded(const std::vector<RankPlace>& places, int rank);

}  // namespace mindpipe
