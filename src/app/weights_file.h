#pragma once
#include <string>

#include "runtime/worker.h"

namespace mindpipe {

/// Writes the weights as safetensors with transformers' names. Collective; world rank 0 writes.
void save_weights(Worker& worker, const std::string& path);
/// Sets the weights from a file of safetensors, ours or another's. Every rank reads for itself.
void read_weights(Worker& worker, const std::string& path);
/// Sets the weights from the file that a training has left in its run directory.
void read_weights_of_run(Worker& worker, const std::string& directory);

}  // namespace mindpipe
