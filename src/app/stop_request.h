#pragma once

namespace mindpipe {

/// Lets SIGUSR1, SIGUSR2, SIGTERM, SIGINT and SIGHUP ask for a clean stop. Called in the first lines of main: a batch system may send
/// the signal before MPI is up. A third signal ends the process at once.
void install_stop_signals();

/// 0: go on; 1: stop after this step, with a checkpoint; 2: it was said twice, stop now. `signal_name` for the log.
int stop_requests();
const char* stop_signal();

}  // namespace mindpipe
