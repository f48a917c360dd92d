#include "comm/ledger.h"

#include "core/check.h"

namespace mindpipe {

void TrafficLedger::add(Axis axis, TrafficClass kind, std::int64_t bytes, double seconds) {
  Line& line = lines_[static_cast<int>(axis)][static_cast<int>(kind)];
  ++line.calls;
  line.bytes += bytes;
  line.seconds += seconds;
}

TrafficLedger::Line TrafficLedger::total() const {
  Line sum;
  for (const auto& axis : lines_)
    for (const Line& line : axis) {
      sum.calls += line.calls;
      sum.bytes += line.bytes;
      sum.seconds += line.seconds;
    }
  return sum;
}

std::string TrafficLedger::table() const {
  std::string text = fmt::format("{:<10} {:<10} {:>10} {:>14} {:>10} {:>10}\n", "axis", "class", "calls",
                                 "MiB sent", "seconds", "MiB/s");
  const auto row = [&](const char* axis, const char* kind, const Line& line) {
    const double mebibytes = static_cast<double>(line.bytes) / 1048576.0;
    text += fmt::format("{:<10} {:<10} {:>10} {:>14.3f} {:>10.3f} {:>10.1f}\n", axis, kind, line.calls,
                        mebibytes, line.seconds, line.seconds > 0 ? mebibytes / line.seconds : 0.0);
  };
  for (Axis axis : axes)
    for (TrafficClass kind : traffic_classes)
      if (of(axis, kind).calls > 0) row(name_of(axis), name_of(kind), of(axis, kind));
  row("all", "", total());
  return text;
}

}  // namespace mindpipe
