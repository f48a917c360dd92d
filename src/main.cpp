#include "app/arguments.h"
#include "app/main_verb.h"
#include "app/stop_request.h"
#include "comm/mpi.h"
#include "core/terminate.h"

/// Catches nothing: every failure ends in the terminate handler, which prints one sentence and ends the job with the documented
/// exit code. Unwinding would run collective destructors, and hang.
int main(int argc, char** argv) {
  using namespace mindpipe;
  set_abort(abort_job);
  install_terminate_handler();
  install_stop_signals();
  return run_verb(parse_arguments(argc, argv));
}
