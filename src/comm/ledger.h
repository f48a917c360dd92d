#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "comm/grid.h"

namespace mindpipe {

/// What traffic is for, highest class first: a lower class begins no new part while a higher one waits.
/// `files` is what ranks bring together to be written: weights, the trace.
enum class TrafficClass { scalars, tensor, pipeline, moves, values, gradients, files };
inline constexpr std::array traffic_classes{
    TrafficClass::scalars, TrafficClass::tensor,    TrafficClass::pipeline, TrafficClass::moves,
    TrafficClass::values,  TrafficClass::gradients, TrafficClass::files};
const char* name_of(TrafficClass kind);

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
