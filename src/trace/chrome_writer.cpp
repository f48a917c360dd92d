#include "trace/chrome_writer.h"

#include <fmt/core.h>

#include <iterator>

namespace mindpipe {

std::string microseconds(std::int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000, (ns < 0 ? -ns : ns) % 1000);
}

std::string label_of(const Action& action) {
  std::string label{name_of(action.kind)};
  if (is_message(action)) label += fmt::format(" {}", name_of(action.payload));
  if (action.micro_batch >= 0) label += fmt::format(" {}", action.micro_batch);
  return label;
}

std::string details_of(const Action& action, std::int64_t bytes) {
  std::string args;
  if (action.micro_batch >= 0) args += fmt::format(R"(, "micro_batch": {})", action.micro_batch);
  if (action.last > action.first)
    args += fmt::format(R"(, "blocks": "{}..{}")", action.first, action.last - 1);
  if (action.parts > 1) args += fmt::format(R"(, "part": "{} of {}")", action.part + 1, action.parts);
  if (bytes > 0 || is_message(action)) args += fmt::format(R"(, "bytes": {})", bytes);
  return args;
}

void ChromeWriter::event(const std::string& members) {
  fmt::format_to(std::back_inserter(text_), "{}{{{}}}", text_.empty() ? "" : ",\n", members);
}

void ChromeWriter::give_name(const char* what, int pid, int tid, const std::string& name, int place) {
  event(fmt::format(R"("ph": "M", "name": "{}_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}})", what,
                    pid, tid, name));
  event(
      fmt::format(R"("ph": "M", "name": "{}_sort_index", "pid": {}, "tid": {}, "args": {{"sort_index": {}}})",
                  what, pid, tid, place));
}

void ChromeWriter::slice(std::string_view name, std::string_view category, int pid, int tid,
                         const Recorder::Times& times, std::int64_t zero, const std::string& args) {
  event(fmt::format(R"("ph": "X", "name": "{}", "cat": "{}", "pid": {}, "tid": {}, )"
                    R"("ts": {}, "dur": {}, "args": {{{}}})",
                    name, category, pid, tid, microseconds(times.start - zero),
                    microseconds(times.end - times.start), args));
}

}  // namespace mindpipe
