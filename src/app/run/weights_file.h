#pragma once
#include <functional>
#include <string>
#include <vector>

#include "runtime/worker.h"

namespace mindpipe {

/// Writes the weights as safetensors with transformers' names. Collective; world rank 0 writes.
void save_weights(Worker& worker, const std::string& path);
/// Gives all elements of a tensor, as it is stored.
using BringTensor = std::function<std::vector<float>(const WholeTensor&)>;
/// Writes a model's weights as safetensors, one tensor after the other as `bring` gives them; how many.
std::size_t write_weights(const Model& model, const std::string& path, const BringTensor& bring);
/// Sets the weights from a file of safetensors, ours or another's. Every rank reads for itself.
void read_weights(Worker& worker, const std::string& path);
/// Sets the weights from the file that a training has left in its run directory; where none has, those that
/// it would begin with, if run.weights names them.
void read_weights_of_run(Worker& worker);
/// Sets the weights from run.weights, which has the model's tensors and no others, before the first step.
void begin_with_weights(Worker& worker);

}  // namespace mindpipe
