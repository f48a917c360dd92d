#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "comm/grid.h"
#include "core/traffic_class.h"

namespace mindpipe {

/// Ledger of what this rank sent: calls, bytes and seconds for each axis and class.
class TrafficLedger {
 public:
  struct Sent {
    std::int64_t calls = 0, bytes = 0;
    double seconds = 0;  ///< time from the beginning to the end of each call, added up
    bool operator==(const Sent&) const = default;
  };

  void add(Axis axis, TrafficClass kind, std::int64_t bytes, double seconds);
  const Sent& of(Axis axis, TrafficClass kind) const {
    return sent_[static_cast<int>(axis)][static_cast<int>(kind)];
  }
  Sent total() const;
  void clear() { sent_ = {}; }
  /// Text with a line for each axis and class that sent something.
  std::string table() const;

 private:
  std::array<std::array<Sent, traffic_classes.size()>, axes.size()> sent_{};
};

}  // namespace mindpipe
