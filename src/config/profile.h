#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace mindpipe {

/// What passes over one block took on a device, in seconds: medians. A whole backward stands in `input`.
struct MeasuredPass {
  double forward = 0, input = 0, weight = 0;
  double spread = 0;  ///< the larger half of the middle half of all times, over the median
  std::string block;  ///< one of the blocks that do this work
};

/// Prices that were measured on a machine, by the digest of what a block asks of its device. Exchanges
/// between ranks are not in them.
struct Profile {
  std::string machine, program;  ///< where they were measured, and by which version
  std::string instructions;      ///< instruction sets that its kernels used, or the GPU
  std::string kernels;           ///< digest of the table of device.kernels; empty: there was none
  int threads = 1, ranks = 1;    ///< threads of a rank; ranks that were busy at once
  double factor = 1;  ///< the median of measured over described times: for work that was not measured
  double update = 0, clear = 0;  ///< bytes a second in an update of weights, and in the zeroing of gradients
  /// Messages between ranks of a node and of two nodes, seconds and bytes a second; 0: not measured.
  double latency = 0, rate = 0, latency_between_nodes = 0, rate_between_nodes = 0;
  int ranks_per_node = 0;  ///< where ranks of several nodes were busy; 0: of one
  std::map<std::uint64_t, MeasuredPass> passes;
};

/// Reads such a file, as strictly as a configuration.
Profile read_profile(const std::string& file);
std::string text_of(const Profile& profile);

}  // namespace mindpipe
