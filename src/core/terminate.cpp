#include "core/terminate.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/check.h"
#include "core/clock.h"
#include "core/launcher.h"
#include "core/log_mark.h"
#include "core/unfinished_file.h"

namespace mindpipe {
namespace {

void (*abort_hook)(int) noexcept = nullptr;
std::atomic_flag ending = ATOMIC_FLAG_INIT;

std::function<void(int, const std::string&)>& last_words_hook() {
  static std::function<void(int, const std::string&)> hook;
  return hook;
}

struct Verdict {
  int code;
  std::string sentence;
};

Verdict verdict_of(const std::exception_ptr& problem) {
  if (!problem)
    return {static_cast<int>(Exit::internal), "internal error: terminate was called without an exception"};
  try {
    std::rethrow_exception(problem);
  } catch (const Error& error) {
    return {static_cast<int>(error.code), legible(error.what())};
  } catch (const std::bad_alloc&) {
    return {static_cast<int>(Exit::out_of_memory),
            "out of memory: this machine would not give any more (use fewer ranks per node, a smaller "
            "train.micro_batch, or train.recompute=block)"};
  } catch (const std::exception& error) {
    return {static_cast<int>(Exit::internal), "internal error: " + legible(error.what())};
  } catch (...) {
    return {static_cast<int>(Exit::internal), "internal error: an exception of an unknown type"};
  }
}

/// Gives lower ranks the time to say what failed, which mostly fails on all, and the launcher the time to end
/// this one. A rank goes on, and speaks, when nobody has. A signal may come from a launcher that kills soon.
void let_lower_ranks_speak() {
  const int rank = launch().rank;
  if (rank == 0) return;
  const std::int64_t start = now_ns();
  double most = 2 + std::min(8.0, 0.25 * (rank - 1));
  for (double left = most; left > 0; left = most - seconds_since(start))
    if (usleep(static_cast<useconds_t>(std::min(left, 0.9) * 1e6)) != 0)
      most = std::max(most, seconds_since(start) + 2.5);
}

void leave_last_words(int code, const std::string& sentence) {
  try {
    if (last_words_hook()) last_words_hook()(code, sentence);
  } catch (...) {  // the sentence is the cause; a full disk under the last words adds nothing
  }
}

[[noreturn]] void on_terminate() {
  if (ending.test_and_set()) {  // a second thread failed, or the words below did
    pause();
    std::_Exit(static_cast<int>(Exit::internal));
  }
  const Verdict verdict = verdict_of(std::current_exception());
  remove_unfinished_files();  // the last words need the room on a full disk, and the launcher may be quick
  let_lower_ranks_speak();
  const int rank = launch().rank;
  const std::string who = rank == 0 ? "" : "rank " + std::to_string(rank) + ": ";
  const std::string line = "mindpipe-train: " + marked(who + verdict.sentence) + "\n";
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  leave_last_words(verdict.code, verdict.sentence);
  if (abort_hook != nullptr) abort_hook(verdict.code);
  std::_Exit(verdict.code);
}

}  // namespace

void install_terminate_handler() { std::set_terminate(on_terminate); }

void set_abort(void (*abort)(int) noexcept) { abort_hook = abort; }

void set_last_words(std::function<void(int, const std::string&)> last_words) {
  last_words_hook() = std::move(last_words);
}

void say_last_words(int code, const std::string& sentence) {
  if (ending.test_and_set()) return;
  remove_unfinished_files();
  leave_last_words(code, sentence);
}

}  // namespace mindpipe
