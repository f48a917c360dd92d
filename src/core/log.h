#pragma once
#include <fmt/core.h>

#include <cstddef>
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
/// Whether this rank writes the log, and whether its stream is a terminal.
bool writes_log();
bool logs_to_terminal();
/// Columns of the terminal; 80 where it does not say.
std::size_t log_columns();
/// Shows a line of `columns` columns in place of the last such line; the next line of news takes its place.
void log_in_place(const std::string& line, std::size_t columns);
/// Leaves the last line that was shown in place where it is, and goes on below.
void keep_line_in_place();
}  // namespace detail

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

}  // namespace mindpipe
