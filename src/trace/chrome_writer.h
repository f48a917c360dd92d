#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "program/action.h"
#include "trace/recorder.h"

namespace mindpipe {

/// Text of a time in the Chrome trace format's unit: microseconds with three decimals, so to the nanosecond.
std::string microseconds(std::int64_t ns);
/// "send activation 3"
std::string label_of(const Action& action);
/// What an action's slice says besides: its micro-batch, blocks, part and bytes.
std::string details_of(const Action& action, std::int64_t bytes);

/// Writes events of the Chrome trace format, with commas between them.
class ChromeWriter {
 public:
  void event(const std::string& members);
  /// Gives a "process" or a "thread" its name and its place among the others.
  void give_name(const char* what, int pid, int tid, const std::string& name, int place);
  /// One complete event. `zero` is the clock's time 0.
  void slice(std::string_view name, std::string_view category, int pid, int tid, const Recorder::Times& times,
             std::int64_t zero, const std::string& args);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace mindpipe
