#pragma once
#include <cstdint>
#include <string>

namespace mindpipe {

/// What carries messages between ranks: what large ones really reach, one way, for each rank.
struct LinkDescription {
  int ranks_per_node = 1;
  double latency = 0, bytes = 0;                              ///< within a node: seconds; a second
  double latency_between_nodes = 0, bytes_between_nodes = 0;  ///< between two nodes: seconds; a second
  double copies = 0;  ///< bytes a second between a device and its host, each way
};

/// A device on paper: what its operations cost. Rates are what large products and copies really reach.
struct DeviceDescription {
  std::string name;
  double flops_f32 = 0, flops_bf16 = 0;  ///< a second
  double bytes = 0;                      ///< bytes of memory traffic a second
  double launch = 0;                     ///< seconds before any operation
  LinkDescription links = {};
  /// Rows, columns or depth at which a product reaches half its rate; 0: it always reaches all of it.
  double half_rate = 0;
  /// How many times attention writes or reads its whole scores forward, backward 1.3 times as often; 0: they
  /// never leave the processor.
  double attention_scores = 0;
  std::int64_t block_bytes = 227 * 1024;  ///< shared memory that a block of a GPU's kernels may have
  /// The share of its rate that a product of these extents reaches.
  double efficiency(double rows, double columns, double depth) const;
};
/// One of the bundled devices ("h200", "h100", "a100", "core", "instant"), or a sentence that lists them.
DeviceDescription describe_device(const std::string& name);

}  // namespace mindpipe
