#pragma once
#include "config/chosen_blocks.h"
#include "config/kinds.h"

namespace mindpipe {

struct TrainConfig {
  int steps = 100, batch = 32, micro_batch = 4;
  Precision precision = Precision::f32;
  ChosenBlocks recompute, swap;
  bool sequence_parallel = false;
  int zero = 0;       ///< sharded over data: 0 nothing, 1 optimizer state, 2 gradients too
  double clip = 1.0;  ///< largest global norm of the gradient; 0: no clipping
  double label_smoothing = 0;
  int evaluate_every = 0, evaluate_batches = 8;  ///< batches of 0: once over all
  int noise_every = 0;                           ///< steps between measurements of the noise scale; 0: never
  int norms_every = 0;  ///< steps between measurements of each tensor's norms; 0: never
  bool operator==(const TrainConfig&) const = default;
};

}  // namespace mindpipe
