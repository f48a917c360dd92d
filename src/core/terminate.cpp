#include "core/terminate.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/check.h"

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
  if (!problem) return {static_cast<int>(Exit::internal), "internal error: terminate was called without an exception"};
  try {
    std::rethrow_exception(problem);
  } catch (const Error& error) {
    return {static_cast<int>(error.code), error.what()};
  } catch (const std::bad_alloc&) {
    return {static_cast<int>(Exit::out_of_memory),
            "out of memory: this machine would not give any more (use fewer ranks per node, a smaller train.micro_batch, or "
            "train.recompute=block)"};
  } catch (const std::exception& error) {
    return {static_cast<int>(Exit::internal), std::string("internal error: ") + error.what()};
  } catch (...) {
    return {static_cast<int>(Exit::internal), "internal error: an exception of an unknown type"};
  }
}

/// What is wrong with a command line or a configuration is wrong on every rank. The others give rank 0 the time to say it and
/// the launcher the time to end them; they speak when neither happens.
bool another_rank_says_it(int code) {
  const bool common = code == static_cast<int>(Exit::usage) || code == static_cast<int>(Exit::bad_configuration);
  return common && launched_rank() != 0 && sleep(3) != 0;  // a signal: the launcher is ending us
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
  if (!another_rank_says_it(verdict.code)) {
    const std::string who = launched_rank() == 0 ? "" : "rank " + std::to_string(launched_rank()) + ": ";
    const std::string line = "mindpipe-train: " + who + verdict.sentence + "\n";
    std::fflush(stdout);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
  }
  leave_last_words(verdict.code, verdict.sentence);
  if (abort_hook != nullptr) abort_hook(verdict.code);
  std::_Exit(verdict.code);
}

}  // namespace

void install_terminate_handler() { std::set_terminate(on_terminate); }

void set_abort(void (*abort)(int) noexcept) { abort_hook = abort; }

void set_last_words(std::function<void(int, const std::string&)> last_words) { last_words_hook() = std::move(last_words); }

void say_last_words(int code, const std::string& sentence) {
  if (!ending.test_and_set()) leave_last_words(code, sentence);
}

int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 0;
}

}  // namespace mindpipe
