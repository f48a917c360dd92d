#pragma once
#include <functional>
#include <string>

namespace mindpipe {

/// Makes every uncaught exception print one sentence and end the job with its documented exit code, without
/// unwinding: destructors that talk to other ranks would hang. Unfinished files are removed.
void install_terminate_handler();

/// Sets how a job is ended before its time, all ranks with it. Else std::_Exit ends this process only.
void set_abort(void (*abort)(int exit_code) noexcept);

/// Sets what is called with exit code and sentence on a rank that fails, before the job ends; empty: nothing.
void set_last_words(std::function<void(int exit_code, const std::string& sentence)> last_words);

/// Calls the last words for a thread that ends the job by itself; from any thread, and only once.
void say_last_words(int exit_code, const std::string& sentence);

}  // namespace mindpipe
