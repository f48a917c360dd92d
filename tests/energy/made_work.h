#pragma once
#include <atomic>

namespace mindpipe {

/// What devices of known powers did, by their own clocks, in memory that several processes share: the file
/// that MADE_NVML_WORK names. The made NVML library meters it; ranks write it.
struct MadeWork {
  static constexpr int most_devices = 8;
  static constexpr double busy_watts = 620, waiting_watts = 250;
  std::atomic<double> busy_seconds[most_devices];
};

}  // namespace mindpipe
