#include "comm/ledger.h"

#include "core/check.h"

namespace mindpipe {

void TrafficLedger::add(Axis axis, TrafficClass kind, std::int64_t bytes, double seconds) {
  Sent& sent = sent_[static_cast<int>(axis)][static_cast<int>(kind)];
  ++sent.calls;
  sent.bytes += bytes;
  sent.seconds += seconds;
}

TrafficLedger::Sent TrafficLedger::total() const {
  Sent sum;
  for (const auto& axis : sent_)
    for (const Sent& sent : axis) {
      sum.calls += sent.calls;
      sum.bytes += sent.bytes;
      sum.seconds += sent.seconds;
    }
  return sum;
}

std::string TrafficLedger::table() const {
  std::string text = fmt::format("{:<10} {:<10} {:>10} {:>14} {:>10} {:>10}\n", "axis", "class", "calls",
                                 "MiB sent", "seconds", "MiB/s");
  const auto row = [&](const char* axis, std::string_view kind, const Sent& sent) {
    const double mebibytes = static_cast<double>(sent.bytes) / 1048576.0;
    text += fmt::format("{:<10} {:<10} {:>10} {:>14.3f} {:>10.3f} {:>10.1f}\n", axis, kind, sent.calls,
                        mebibytes, sent.seconds, sent.seconds > 0 ? mebibytes / sent.seconds : 0.0);
  };
  for (Axis axis : axes)
    for (TrafficClass kind : traffic_classes)
      if (of(axis, kind).calls > 0) row(name_of(axis), name_of(kind), of(axis, kind));
  row("all", "", total());
  return text;
}

}  // namespace mindpipe
