#pragma once
#include <cstdint>

#include "program/clock/task.h"

namespace mindpipe {

/// A number of 64 bits for all that a planner has seen to start so far: ranks whose numbers are equal have
/// planned the same.
class StartsHash {
 public:
  void add(const Task& start) {
    const auto pair = [](std::int64_t high, std::int64_t low) {
      return static_cast<std::uint64_t>(high) << 32 | static_cast<std::uint32_t>(low);
    };
    mix(pair((static_cast<int>(start.kind) * 8 + start.owner.of) * 8 + (start.with_forward ? 4 : 0) +
                 static_cast<int>(start.waits),
             start.rank));
    mix(pair(start.micro_batch, start.peer));
    mix(pair(start.unit, start.block));
    mix(static_cast<std::uint64_t>(start.owner.number));
    mix(pair(start.slot, start.slab));
    mix(pair(start.first, start.last));
    for (const int unit : start.units) mix(static_cast<std::uint64_t>(unit));
    mix(pair(start.sums.calls, 0) ^ static_cast<std::uint64_t>(start.sums.bytes));
    mix(static_cast<std::uint64_t>(start.start));
    mix(static_cast<std::uint64_t>(start.end));
  }
  std::uint64_t value() const { return hash_; }

 private:
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 32;
  }
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace mindpipe
