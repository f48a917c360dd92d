#pragma once
#include <string>

namespace mindpipe {

/// This process's place in its job, as mpirun or srun told it in the environment, before MPI is up.
struct Launch {
  bool launched = false;  ///< false: nobody launched it, and it is a job of one rank
  int rank = 0;
  int ranks = 1;  ///< 0: the launcher did not say
};

Launch launch();

/// The value of a variable of the environment; empty without it.
std::string environment(const char* name);

}  // namespace mindpipe
