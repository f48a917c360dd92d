#include "app/stop_request.h"

#include <unistd.h>
#include <csignal>

#include "core/check.h"

namespace mindpipe {
namespace {

volatile std::sig_atomic_t requests = 0, last_signal = 0;

void on_signal(int signal) {
  last_signal = signal;
  if (requests < 2) requests = requests + 1;
  else _exit(static_cast<int>(Exit::stopped));
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a system call in the middle of a step goes on
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

int stop_requests() { return requests; }

const char* stop_signal() {
  switch (last_signal) {
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "none";
  }
}

}  // namespace mindpipe
