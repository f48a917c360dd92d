#include "core/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "core/log_mark.h"
#include "core/text.h"

namespace mindpipe {
namespace {

struct Log {
  int rank = 0;
  std::string mark;
  std::FILE* stream = stderr;
  bool terminal = isatty(STDERR_FILENO) != 0;
  std::size_t open_width = 0;  // columns of the unfinished progress line on the terminal
};

Log& the_log() {
  static Log log;
  return log;
}

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), the_log().stream);
  std::fflush(the_log().stream);
}

}  // namespace

void set_log_rank(int rank) { the_log().rank = rank; }

void set_log_mark(std::string mark) { the_log().mark = std::move(mark); }

std::string marked(const std::string& text) {
  std::string lines;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n' && (i == 0 || text[i - 1] == '\n')) lines += the_log().mark;
    lines += text[i];
  }
  return lines;
}

std::string legible(std::string_view sentence) {
  constexpr std::size_t most_of_line = 8192;
  std::string shown;
  for (std::size_t begin = 0; begin <= sentence.size();) {
    const std::size_t end = std::min(sentence.find('\n', begin), sentence.size());
    shown += (begin > 0 ? "\n" : "") + printable(sentence.substr(begin, end - begin), most_of_line);
    begin = end + 1;
  }
  return shown;
}

void set_log_stream(std::FILE* stream) {
  the_log().stream = stream;
  the_log().terminal = isatty(fileno(stream)) != 0;
}

void detail::log_line(const char* kind, const std::string& line) {
  Log& log = the_log();
  if (log.rank != 0) return;
  // the progress line makes room
  const std::string room = log.open_width > 0 ? fmt::format("\r{:{}}\r", "", log.open_width) : "";
  log.open_width = 0;
  write(room + marked(kind + legible(line)) + "\n");
}

bool detail::writes_log() { return the_log().rank == 0; }
bool detail::logs_to_terminal() { return the_log().terminal; }

std::size_t detail::log_columns() {
  winsize size{};
  const bool said = ioctl(fileno(the_log().stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return said ? size.ws_col : 80;
}

void detail::log_in_place(const std::string& line, std::size_t columns) {
  std::size_t& width = the_log().open_width;
  const std::size_t rest = columns < width ? width - columns : 0;
  width = columns;
  write("\r" + line + std::string(rest, ' '));
}

void detail::keep_line_in_place() {
  if (the_log().open_width == 0) return;
  the_log().open_width = 0;
  write("\n");
}

}  // namespace mindpipe
