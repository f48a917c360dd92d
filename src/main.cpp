#include <unistd.h>

#include <cstdlib>

#include "app/train/stop_request.h"
#include "app/verbs/arguments.h"
#include "app/verbs/main_verb.h"
#include "comm/mpi.h"
#include "core/terminate.h"

namespace {

/// OpenMP's threads wait for their next piece of work by spinning, by default for about a millisecond: on a
/// machine that is shared, that takes the processor from the very thread that is waited for. Its library
/// reads the environment when it is loaded, so the program starts itself once more.
void calm_threads(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "20000", 1);
  execv("/proc/self/exe", argv);  // where that is not possible, threads spin as long as they do
}

}  // namespace

/// Catches nothing: every failure ends in the terminate handler, which prints one sentence and ends the job
/// with the documented exit code. Unwinding would run collective destructors, and hang.
int main(int argc, char** argv) {
  calm_threads(argv);
  using namespace mindpipe;
  set_abort(abort_job);
  install_terminate_handler();
  install_stop_signals();
  return run_verb(parse_arguments(argc, argv));
}
