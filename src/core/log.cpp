#include "core/log.h"

#include <unistd.h>

#include "core/clock.h"
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

constexpr double plain_interval = 10;      // seconds between plain lines
constexpr double terminal_interval = 0.1;  // a terminal need not see every step

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
  write(room + marked(kind + line) + "\n");
}

Progress::Progress(std::int64_t done, std::int64_t total) : start_(done), total_(total), begun_(now_ns()) {}

Progress::~Progress() {
  Log& log = the_log();
  if (log.rank != 0 || log.open_width == 0) return;
  log.open_width = 0;
  write("\n");
}

void Progress::update(std::int64_t done, const std::string& text) {
  Log& log = the_log();
  if (clock_start_ == 0) {  // the clock starts behind the first step
    start_ = done;
    clock_start_ = now_ns();
  }
  if (log.rank != 0) return;
  const bool first = last_shown_ == 0, last = done >= total_;
  if (!first && !last && seconds_since(last_shown_) < (log.terminal ? terminal_interval : plain_interval))
    return;
  last_shown_ = now_ns();

  std::string line = marked(
      fmt::format("step {}/{} | {} | {} used", done, total_, text, human_seconds(seconds_since(begun_))));
  if (done > start_ && !last)
    line += " | ETA " + human_seconds(seconds_since(clock_start_) / static_cast<double>(done - start_) *
                                      static_cast<double>(total_ - done));
  if (!log.terminal) {
    write(line + "\n");
    return;
  }
  const std::size_t width = line.size();
  if (width < log.open_width) line += std::string(log.open_width - width, ' ');
  log.open_width = width;
  write("\r" + line);
}

}  // namespace mindpipe
