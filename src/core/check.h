#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace mindpipe {

/// Exit codes: what the process tells its launcher. The numbers are a promise to batch scripts.
enum class Exit : int {
  done = 0,
  internal = 1,
  usage = 2,
  bad_data = 65,
  input_missing = 66,
  out_of_memory = 71,
  cannot_create = 73,
  io_error = 74,
  stopped = 75,
  peer_failed = 76,
  permission = 77,
  bad_configuration = 78,
  diverged = 79,
  checkpoint_corrupt = 80,
  watchdog = 81,
};

/// Every failure this program can name: one sentence for the user and the exit code. Thrown, never returned.
struct Error : std::runtime_error {
  Error(Exit exit_code, const std::string& sentence) : std::runtime_error(sentence), code(exit_code) {}
  Exit code;
};

/// Throws an Error: fail(Exit::bad_data, "{}: token {} at offset {} (the vocabulary has {})", ...)
template <class... Parts>
[[noreturn]] void fail(Exit code, fmt::format_string<Parts...> sentence, Parts&&... parts) {
  throw Error(code, fmt::format(sentence, std::forward<Parts>(parts)...));
}

}  // namespace mindpipe

/// Checks what a user can get wrong. Always on: MP_REQUIRE(rows > 0, Exit::bad_data, "{} rows", rows)
#define MP_REQUIRE(condition, code, ...)                   \
  do {                                                     \
    if (!(condition)) ::mindpipe::fail(code, __VA_ARGS__); \
  } while (false)

/// Checks what only a mistake of ours can break. Always on; says where.
#define MP_CHECK(condition, ...)                                                    \
  do {                                                                              \
    if (!(condition))                                                               \
      ::mindpipe::fail(::mindpipe::Exit::internal, "{}:{}: {}", __FILE__, __LINE__, \
                       ::fmt::format(__VA_ARGS__));                                 \
  } while (false)
