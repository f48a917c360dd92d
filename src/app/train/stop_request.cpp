#include "app/train/stop_request.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/check.h"
#include "core/launcher.h"
#include "core/log_mark.h"
#include "core/unfinished_file.h"

namespace mindpipe {

bool says(const char* path, const char* state) {
  char text[64] = "";
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  constexpr char before[] = "{\"state\": \"";
  constexpr std::size_t begin = sizeof before - 1;
  const std::size_t end = begin + std::strlen(state);
  return length > static_cast<ssize_t>(end) && std::memcmp(text, before, begin) == 0 &&
         std::memcmp(text + begin, state, end - begin) == 0 && text[end] == '"';
}

namespace {

struct Signal {
  int number;
  const char* name;
};
constexpr Signal signals[] = {
    {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}};

enum Phase : int { before_steps, in_steps, without_steps };
volatile std::sig_atomic_t phase = before_steps, last_signal = 0;
/// Whether this rank may speak, as only rank 0 does, and SIGTERM may be a launcher's, who ends others so.
volatile std::sig_atomic_t is_rank_0 = 1, is_launched = 0;

/// What an end leaves behind, twice: the handler reads the one that is not being written.
struct LeftBehind {
  char path[4096], temporary[4096], text[4096], by_launcher[4096], lock[4096];
};
std::array<LeftBehind, 2> left_behind;
/// What stands before each line of the log.
char mark[4096] = "";
volatile std::sig_atomic_t current = -1;
volatile std::sig_atomic_t launcher_ends = 0;

const char* name_of(int signal) {
  for (const Signal& one : signals)
    if (one.number == signal) return one.name;
  return "none";
}

// From here to on_signal: only what a signal's handler may call.

void put(int file, const char* text) {
  [[maybe_unused]] const ssize_t written = write(file, text, std::strlen(text));
}

bool is_of_launcher(int signal) { return signal == SIGTERM && is_launched; }

void say(int signal, const char* who, const char* before, const char* after) {
  if (!is_rank_0 || is_of_launcher(signal)) return;
  put(STDERR_FILENO, who);
  put(STDERR_FILENO, mark);
  put(STDERR_FILENO, before);
  put(STDERR_FILENO, name_of(signal));
  put(STDERR_FILENO, after);
}

void leave_text(const LeftBehind& left, const char* text) {
  if (left.path[0] == '\0' || says(left.path, "failed")) return;
  unlink(left.temporary);
  const int file = open(left.temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return;
  put(file, text);
  fsync(file);
  close(file);
  std::rename(left.temporary, left.path);
}

void leave(int signal) {
  if (current < 0) return;
  const LeftBehind& left = left_behind[current];
  leave_text(left, is_of_launcher(signal) ? left.by_launcher : left.text);
  if (left.lock[0] != '\0') unlink(left.lock);
}

[[noreturn]] void end_at_once(int signal) {
  say(signal, "mindpipe-train: ", "stopped at once by ",
      phase == in_steps       ? ", the second signal: what was not saved yet is lost\n"
      : phase == before_steps ? " before the first step\n"
                              : "\n");
  remove_unfinished_files();
  leave(signal);
  _exit(static_cast<int>(Exit::stopped));
}

bool waits_for_a_step(int signal) { return signal == SIGUSR1 || signal == SIGUSR2; }

void on_signal(int signal) {
  const bool again = last_signal != 0;
  if (phase == without_steps || (!waits_for_a_step(signal) && (phase == before_steps || again)))
    end_at_once(signal);
  last_signal = signal;
  if (phase == in_steps && is_of_launcher(signal)) {
    const int interrupted = errno;
    launcher_ends = 1;
    if (current >= 0) leave_text(left_behind[current], left_behind[current].by_launcher);
    errno = interrupted;
  }
  if (phase == in_steps && !again)
    say(signal, "", "",
        ": stops after this step or the next and saves the weights; SIGINT or SIGTERM stops at once\n");
}

void copy_to(char (&room)[4096], const std::string& text) {
  MP_CHECK(text.size() < sizeof room, "{} bytes to leave behind", text.size());
  std::memcpy(room, text.c_str(), text.size() + 1);
}

}  // namespace

void install_stop_signals() {
  is_rank_0 = launch().rank == 0;
  is_launched = launch().launched;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a system call in the middle of a step goes on
  sigemptyset(&action.sa_mask);
  for (const Signal& one : signals) sigaddset(&action.sa_mask, one.number);  // one after the other
  for (const Signal& one : signals) sigaction(one.number, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is an error of the call that writes
}

void stop_at_once() {
  phase = without_steps;
  if (last_signal != 0) end_at_once(last_signal);
}

void stop_after_step() {
  const std::string marks = marked("x");
  copy_to(mark, marks.substr(0, std::min(marks.size(), sizeof mark) - 1));
  phase = in_steps;
}

bool stop_asked() { return last_signal != 0; }

bool launcher_ends_it() { return launcher_ends != 0; }

void leave_at_stop(const std::string& path, const std::string& text, const std::string& by_launcher,
                   const std::string& lock) {
  const int next = current == 0 ? 1 : 0;
  LeftBehind& left = left_behind[next];
  copy_to(left.path, path);
  copy_to(left.temporary, path.empty() ? "" : path + ".stopped.partial");
  copy_to(left.text, text);
  copy_to(left.by_launcher, by_launcher);
  copy_to(left.lock, lock);
  current = next;
}

}  // namespace mindpipe
