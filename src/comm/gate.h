#pragma once
#include <array>
#include <cstdint>

#include "core/clock.h"
#include "core/traffic_class.h"

namespace mindpipe {

/// Decides who may begin a bulk part: nobody while a higher class has something on its way out. There is one
/// gate for each rank.
///
/// A higher class that has been at it for long waits for a late peer rather than for the link, and no longer
/// holds the gate shut; so bulk traffic always gets through in the end and no rank can hold up another for
/// good.
class TrafficGate {
 public:
  void begin(TrafficClass kind) {
    if (under_way_[static_cast<int>(kind)]++ == 0) since_[static_cast<int>(kind)] = now_ns();
  }
  void end(TrafficClass kind) { --under_way_[static_cast<int>(kind)]; }
  bool open_for(TrafficClass kind) const {
    for (int higher = 0; higher < static_cast<int>(kind); ++higher)
      if (under_way_[higher] > 0 && now_ns() - since_[higher] < patience_ns) return false;
    return true;
  }

 private:
  static constexpr std::int64_t patience_ns = 5'000'000;
  std::array<int, traffic_classes.size()> under_way_{};
  std::array<std::int64_t, traffic_classes.size()> since_{};
};

}  // namespace mindpipe
