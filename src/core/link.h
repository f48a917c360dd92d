#pragma once
#include <cmath>
#include <cstdint>

#include "core/port_rule.h"

namespace mindpipe {

/// How long a message takes that meets no other, on paper and between ranks that imitate devices: latency +
/// bytes x time for a byte.
struct Link {
  std::int64_t latency = 0;         ///< nanoseconds
  double picoseconds_per_byte = 0;  ///< 100: 10 GB/s; 0: free
  Level level = Level::node;        ///< the ports between which it lies
  std::int64_t carries(std::int64_t bytes) const {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * picoseconds_per_byte / 1000));
  }
  std::int64_t time(std::int64_t bytes) const { return latency + carries(bytes); }
};

}  // namespace mindpipe
