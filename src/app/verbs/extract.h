#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "app/run/files_beside.h"
#include "app/run/subnet_config.h"

namespace mindpipe {

/// Whether model.safetensors of a run directory has its newest weights: the run ended or stopped with them.
bool has_newest_weights(const std::string& run);
/// Refuses weights of another space than `supernet` has, with the first block that differs.
void require_space(const std::string& run_or_checkpoint, const Config& supernet);
/// The configuration that a supernet was trained with: of a run directory or a checkpoint.
Config supernet_of(const std::string& run_or_checkpoint, const std::vector<std::string>& overrides = {});
/// Writes the weights of one network of a supernet into a directory, as a run does at its end: those that
/// the supernet's run has ended or stopped with; where it was cut off, of its newest checkpoint; or of the
/// checkpoint that is named. What all networks share is as the newest window has left it. Refuses weights of
/// another space than `supernet` has. `more` describes them in the directory. Gives words on whose weights
/// they are.
std::string extract_weights(const std::string& run_or_checkpoint, const Config& supernet,
                            const std::vector<std::uint8_t>& choice, const std::string& directory,
                            const Descriptions& more = {});

}  // namespace mindpipe
