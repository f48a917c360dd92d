#pragma once
#include <algorithm>
#include <cstdint>

#include "program/outline.h"

namespace mindpipe {

/// Where a device has the state of units that is kept on the host: slots with room for the largest each.
struct StateSlots {
  std::int64_t count = 0, largest = 0;
  /// Counts in a unit whose state is so large; none where nothing is kept of it.
  void add(std::int64_t bytes) {
    if (bytes > 0) count = std::min<std::int64_t>(count + 1, state_slots);
    largest = std::max(largest, bytes);
  }
  std::int64_t bytes() const { return count * largest; }
};

}  // namespace mindpipe
