#pragma once
#include <string>
#include <vector>

namespace mindpipe {

/// The directory of the checkpoint that `path` names: itself, or the newest of a run directory.
std::string checkpoint_at(const std::string& path);

/// Prints, tensor by tensor, how two checkpoints differ; whether they do.
bool print_difference(const std::string& a, const std::string& b);

/// Writes a checkpoint's weights as a run does at its end, or as one file; `overrides` of its settings say
/// how. Gives a line for the user.
std::string export_weights(const std::string& directory, const std::string& output,
                           const std::vector<std::string>& overrides);

}  // namespace mindpipe
