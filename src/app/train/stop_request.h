#pragma once
#include <string>

namespace mindpipe {

/// Lets SIGUSR1, SIGUSR2, SIGTERM, SIGINT and SIGHUP stop the program with exit code 75. Called in the first
/// lines of main: a batch system may send the signal before MPI is up. Until one of the two below is called,
/// SIGUSR1 and SIGUSR2 are kept for the first step and the others end the process at once.
void install_stop_signals();

/// Lets every signal end the process at once, also one that has come already: for work without steps.
void stop_at_once();
/// Lets the first signal wait for the step's end; a second SIGTERM, SIGINT or SIGHUP ends at once.
void stop_after_step();

/// Whether a signal has asked for a stop after this step.
bool stop_asked();

/// What an end at once leaves behind: `text` as the file `path` in one move, and `lock` removed. Prepared
/// beforehand, because a signal's handler may not think. Empty: nothing. SIGTERM from a launcher leaves
/// `by_launcher` for `text`, and among the steps does so at once: it may mean that another rank is lost, the
/// step has no end then, and the launcher's SIGKILL follows. Unfinished files are removed in any case.
void leave_at_stop(const std::string& path, const std::string& text, const std::string& by_launcher,
                   const std::string& lock);
/// Whether the status in the file `path` is `state`. Where another rank has written that the job failed, that
/// stays: this one's end is the consequence.
bool says(const char* path, const char* state);
/// Whether SIGTERM from a launcher has come among the steps: the file stands as it was prepared.
bool launcher_ends_it();

}  // namespace mindpipe
