#pragma once

namespace mindpipe {

/// What mpirun or srun told this process, before MPI is up.
struct Launch {
  bool launched = false;
  int rank = 0;
  int ranks = 1;  ///< 0: the launcher did not say
};

Launch launch();

}  // namespace mindpipe
