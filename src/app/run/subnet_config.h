#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/models/space.h"

namespace mindpipe {

struct Config;

// A network of a supernet as a model of its own. Its units have the names that they have in the supernet, so
// that its weights are some of the supernet's.

/// The configuration of one network: all settings of the supernet that such a model has too, one rank, the
/// usual schedule. `weights`: a file that training begins with; empty: it begins from scratch.
Config subnet_config(const Config& supernet, const std::vector<std::uint8_t>& choice,
                     const std::string& run_dir, const std::string& weights = "");
/// The settings of a supernet whose networks, each by itself, are trained for `steps` steps.
Config with_steps(Config supernet, int steps);
/// The configuration of one network as a file to read and to change: what differs from the defaults, below
/// words on what the network is and where it comes from.
std::string subnet_yaml(const Config& supernet, const std::vector<std::uint8_t>& choice,
                        const std::string& run_dir, const std::string& weights = "");

/// A space, and the number of each block's candidate in one of its networks.
struct NamedNetwork {
  Space space;
  std::vector<std::uint8_t> choice;
};
/// The network that a configuration is of; none where its model is none of a space.
std::optional<NamedNetwork> network_of(const Config& config);

}  // namespace mindpipe
