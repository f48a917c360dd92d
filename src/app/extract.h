#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"

namespace mindpipe {

// A network of a supernet as a model of its own. Its units have the names that they have in the supernet, so
// that its weights are some of the supernet's.

/// The configuration of one network: all settings of the supernet that such a model has too, one rank, the
/// usual schedule. `weights`: a file that training begins with; empty: it begins from scratch.
Config subnet_config(const Config& supernet, const std::vector<std::uint8_t>& choice,
                     const std::string& run_dir, const std::string& weights = "");
/// That configuration as a file to read and to change: what differs from the defaults, below words on what
/// the network is and where it comes from.
std::string subnet_yaml(const Config& supernet, const std::vector<std::uint8_t>& choice,
                        const std::string& run_dir, const std::string& weights = "");

/// Whether model.safetensors of a run directory has its newest weights: the run ended or stopped with them.
bool has_newest_weights(const std::string& run);
/// Refuses weights of another space than `supernet` has, with the first block that differs.
void require_space(const std::string& run_or_checkpoint, const Config& supernet);
/// The configuration that a supernet was trained with: of a run directory or a checkpoint.
Config supernet_of(const std::string& run_or_checkpoint);
/// Writes the weights of one network of a supernet as safetensors: those that its run has ended or stopped
/// with; where it was cut off, of its newest checkpoint; or of the checkpoint that is named. What all
/// networks share is as the newest window has left it. Refuses weights of another space than `supernet` has.
/// Gives words on whose weights they are.
std::string extract_weights(const std::string& run_or_checkpoint, const Config& supernet,
                            const std::vector<std::uint8_t>& choice, const std::string& file);

}  // namespace mindpipe
