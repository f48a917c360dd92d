#pragma once
#include <functional>
#include <string>

namespace mindpipe {

/// Makes every uncaught exception print one sentence and end the job with its documented exit code, without
/// unwinding: destructors that talk to other ranks would hang. Unfinished files are removed. Called once, in
/// the first lines of main.
void install_terminate_handler();

/// How a job ends before its time, all of its ranks with it. Without one, std::_Exit ends this process.
void set_abort(void (*abort)(int exit_code) noexcept);

/// Called with exit code and sentence before the job ends by failure, on the rank that failed; an empty
/// function takes it back.
void set_last_words(std::function<void(int exit_code, const std::string& sentence)> last_words);

/// Calls the last words for a thread that ends the job by itself; from any thread, and only once.
void say_last_words(int exit_code, const std::string& sentence);

}  // namespace mindpipe
