#include "core/progress.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/clock.h"
#include "core/log.h"
#include "core/log_mark.h"
#include "core/terminal.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr double plain_interval = 60;      // seconds between plain lines
constexpr double terminal_interval = 0.1;  // a terminal need not see every step

/// 1, 2, 5, 10, 20, 50, 100 ...
bool is_round(std::int64_t number) {
  while (number > 0 && number % 10 == 0) number /= 10;
  return number == 1 || number == 2 || number == 5;
}

/// The line with a bar between its front and its end, as wide as the terminal allows.
void show_on_terminal(const std::string& front, double share, const std::string& end) {
  constexpr std::size_t widest_bar = 24, least_bar = 6;
  const std::size_t columns = detail::log_columns() - 1, text = front.size() + end.size();
  std::string line = front + end;
  if (text + least_bar + 1 <= columns) {
    const std::size_t width = std::min(widest_bar, columns - text - 1);
    line = front + bar(share, static_cast<int>(width), is_utf8_locale()) + " " + end;
    detail::log_in_place(line, text + width + 1);
    return;
  }
  line.resize(std::min(line.size(), columns));
  detail::log_in_place(line, line.size());
}

}  // namespace

bool is_plain_line_due(std::int64_t steps, double seconds_since_line) {
  return is_round(steps) || seconds_since_line >= plain_interval;
}

Progress::Progress(std::int64_t done, std::int64_t total, std::int64_t every)
    : begin_(done), paced_from_(done), total_(total), every_(every), begun_(now_ns()) {}

Progress::~Progress() {
  if (detail::writes_log()) detail::keep_line_in_place();
}

void Progress::go_back_to(std::int64_t done) {
  begin_ = paced_from_ = done;
  clock_start_ = 0;
}

bool Progress::is_due(std::int64_t done) const {
  if (last_shown_ == 0 || done >= total_) return true;
  const double waited = seconds_since(last_shown_);
  if (detail::logs_to_terminal()) return waited >= terminal_interval;
  return every_ > 0 ? done % every_ == 0 : is_plain_line_due(done - begin_, waited);
}

void Progress::update(std::int64_t done, const std::string& text) {
  if (clock_start_ == 0) {  // the clock starts behind the first step
    paced_from_ = done;
    clock_start_ = now_ns();
  }
  if (!detail::writes_log() || !is_due(done)) return;
  last_shown_ = now_ns();

  std::string end = fmt::format("| {} | {} used", text, human_seconds(seconds_since(begun_)));
  if (done > paced_from_ && done < total_)
    end += " | ETA " + human_seconds(seconds_since(clock_start_) / static_cast<double>(done - paced_from_) *
                                     static_cast<double>(total_ - done));
  const std::string front = fmt::format("step {}/{} ", done, total_);
  if (!detail::logs_to_terminal()) detail::log_line("", front + end);
  else show_on_terminal(marked(front), static_cast<double>(done) / static_cast<double>(total_), end);
}

}  // namespace mindpipe
