#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace mindpipe {

/// Tells the log which rank this is; only rank 0 writes lines.
void set_log_rank(int rank);
/// Sends the log's lines to `stream`; without this they go to stderr.
void set_log_stream(std::FILE* stream);

namespace detail {
void log_line(const char* kind, const std::string& line);
}

/// Logs a line of news.
template <class... Parts>
void info(fmt::format_string<Parts...> text, Parts&&... parts) {
  detail::log_line("", fmt::format(text, std::forward<Parts>(parts)...));
}

/// Logs a warning: something is not as the user would want it, and the line says what to do.
template <class... Parts>
void warning(fmt::format_string<Parts...> text, Parts&&... parts) {
  detail::log_line("warning: ", fmt::format(text, std::forward<Parts>(parts)...));
}

/// How far a run has come, the time that it has used and the time that it will take still (ETA): one line
/// that changes in place on a terminal, else a plain line now and then. It measures its own pace; the first
/// step it is told of only starts the clock, since it carries what happens once.
class Progress {
 public:
  /// Begins where `done` of `total` steps lie behind us.
  Progress(std::int64_t done, std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows that `done` steps are done; `text` is what to say of the last one: "loss 2.31 | 12.3k tokens/s".
  void update(std::int64_t done, const std::string& text);

 private:
  std::int64_t start_, total_;
  std::int64_t begun_, clock_start_ = 0, last_shown_ = 0;
};

}  // namespace mindpipe
