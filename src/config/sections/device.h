#pragma once
#include <cstdint>
#include <string>

#include "config/kinds.h"

namespace mindpipe {

/// What carries messages between ranks, for prices; 0: as device.description says.
struct LinksConfig {
  int ranks_per_node = 0;
  double latency = 0, rate = 0, latency_between_nodes = 0, rate_between_nodes = 0;
  double copies = 0;  ///< between a device and its host, each way
  bool operator==(const LinksConfig&) const = default;
};

struct DeviceConfig {
  DeviceKind kind = DeviceKind::cpu;
  int threads = 0;                    ///< 0: as many as this process may use
  std::string instructions = "auto";  ///< auto | avx512 | avx2 | baseline
  std::string description;            ///< emulated: the device to imitate
  std::string profile;                ///< a file of prices that were measured; empty: those of a description
  LinksConfig links;
  TransportKind transport = TransportKind::automatic;        ///< cuda: what carries messages between ranks
  std::int64_t attention_workspace = std::int64_t{2} << 30;  ///< cuda: bytes that a plan of cuDNN may take
  AttentionBeyond attention_beyond = AttentionBeyond::pieces;
  int reserved_multiprocessors = 0;  ///< cuda: what products leave to messages
  std::string kernels;  ///< cuda: a table of algorithms by `doctor --tune`; empty: the library's own choice
  bool operator==(const DeviceConfig&) const = default;
};

}  // namespace mindpipe
