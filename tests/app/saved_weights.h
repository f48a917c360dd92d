#pragma once
#include "app/run/weights.h"
#include "config/config.h"

namespace mindpipe {

/// Writes the weights as one file of safetensors in f32, with transformers' names. Collective over the world.
inline void save_weights(Worker& worker, const std::string& path) {
  write_together(worker, WeightFiles::one(worker.stage().model(), {}, path));
}

}  // namespace mindpipe
