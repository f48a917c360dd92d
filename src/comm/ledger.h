#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "comm/grid.h"
#include "core/traffic_class.h"

namespace mindpipe {

/// What this rank sent: calls, bytes and seconds for each axis and class.
class TrafficLedger {
 public:
  struct Line {
    std::int64_t calls = 0, bytes = 0;  ///< bytes sent
    double seconds = 0;                 ///< from the beginning to the end of each call
    bool operator==(const Line&) const = default;
  };

  void add(Axis axis, TrafficClass kind, std::int64_t bytes, double seconds);
  const Line& of(Axis axis, TrafficClass kind) const {
    return lines_[static_cast<int>(axis)][static_cast<int>(kind)];
  }
  Line total() const;
  void clear() { lines_ = {}; }
  /// A line for each axis and class that sent something.
  std::string table() const;

 private:
  std::array<std::array<Line, traffic_classes.size()>, axes.size()> lines_{};
};

}  // namespace mindpipe
