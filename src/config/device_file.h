#pragma once
#include <string>

namespace mindpipe {

/// A device on paper as a file has it: a bundled one, and what is otherwise there. What is 0 (-1 where 0 has
/// a meaning) stays as the bundled device has it.
struct DeviceFile {
  std::string like;  ///< the bundled device, whose power and plans of attention hold for this one
  double flops_f32 = 0, flops_bf16 = 0, bytes = 0;  ///< a second
  double launch = -1;                               ///< seconds before any operation
  double half_rate = -1;         ///< rows, columns or depth at which a product reaches half its rate
  double attention_scores = -1;  ///< times that a pass forward writes or reads the scores of attention
  int ranks_per_node = 0;
  double latency = -1, rate = 0, latency_between_nodes = -1, rate_between_nodes = 0, copies = 0;
};

/// Whether device.description is a file and no bundled device: it ends in .yaml.
bool is_device_file(const std::string& description);
/// Reads such a file, as strictly as a configuration.
DeviceFile read_device_file(const std::string& file);

}  // namespace mindpipe
