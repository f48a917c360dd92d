#pragma once
#include <chrono>
#include <cstdint>

namespace mindpipe {

/// Nanoseconds of a clock that never goes back.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline double seconds_since(std::int64_t start_ns) { return (now_ns() - start_ns) * 1e-9; }

}  // namespace mindpipe
