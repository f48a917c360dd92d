#pragma once
#include <mpi.h>

#include <cstdlib>

#include "comm/mpi.h"

namespace mindpipe {

/// Every rank under this mpirun, as a run takes them.
inline World all_ranks() {
  World world{MPI_COMM_WORLD};
  MPI_Comm_rank(world.comm, &world.rank);
  MPI_Comm_size(world.comm, &world.size);
  return world;
}

/// Whether a test runs on a machine that runs nothing else, with all its cases.
inline bool whole_matrix() { return std::getenv("MINDPIPE_ALL_LAYOUTS") != nullptr; }

}  // namespace mindpipe
