#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/run/files_beside.h"
#include "app/run/weight_files.h"
#include "runtime/worker.h"

namespace mindpipe {

/// Writes the weights to these files, and gives `beside`, if any, what it describes. All ranks write what
/// they have; collective over the world.
void write_together(Worker& worker, const WeightFiles& files, FilesBeside* beside = nullptr);
/// Writes them to a directory as `config.exported` says, so that transformers opens it: config.json, the
/// tokenizer, and one file or parts with an index; the path of either. Collective over the world.
std::string save_weights_for_others(Worker& worker, const std::string& directory);
/// Gives elements [first, first + count) of a tensor, as files have them.
using GiveWords =
    std::function<void(const WholeTensor& tensor, std::int64_t first, std::int64_t count, float* to)>;
/// Writes a model's weights as one file, with the precision and the names of `config.exported`, by one
/// process, as `give` gives them; how many tensors.
std::size_t write_weights(const Model& model, const Config& config, const std::string& path,
                          const GiveWords& give);
/// Writes what save_weights_for_others does, by one process, as `give` gives it; how many tensors. `more`
/// describes the weights beside config.json.
std::size_t write_weights_for_others(const Model& model, const Config& config, const std::string& directory,
                                     const GiveWords& give, const Descriptions& more = {});
/// Sets the weights from a file or directory of safetensors, ours or another's, or from a checkpoint. Every
/// rank reads for itself. Collective. `new_head`: those of the head stay as they were drawn.
void read_weights(Worker& worker, const std::string& path, bool new_head = false);
/// Sets the weights from the file that a training has left in its run directory; where none has, those that
/// it would begin with, if run.weights names them.
void read_weights_of_run(Worker& worker);
/// Sets the weights from run.weights before the first step.
void begin_with_weights(Worker& worker);

}  // namespace mindpipe
