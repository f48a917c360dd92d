#pragma once
#include <span>

#include "backend.h"
#include "config/sections/optimizer.h"

namespace mindpipe {

/// What an optimizer moves at once: ranges of a unit's flat order, with all that belongs to them.
struct Update {
  const OptimizerConfig& config;
  float rate;
  const Tensor& decision;  ///< the step's decision (Backend::clip_and_scale)
  Tensor gradient;
  Tensor master;                    ///< the values in f32
  std::span<const Tensor> moments;  ///< in the order of OptimizerConfig::moments
  Tensor rounded;                   ///< the values in bf16; none where the network computes in f32
  const std::vector<UpdateSpan>& spans;
};

// adamw_update, sgd_update: every optimizer of config/kinds.h, each in a file of its own.
#define MINDPIPE_DECLARE_UPDATE(optimizer, ...) \
  void optimizer##_update(Backend& backend, const Update& update);
MINDPIPE_OPTIMIZERS(MINDPIPE_DECLARE_UPDATE)
#undef MINDPIPE_DECLARE_UPDATE

/// Moves the values by the optimizer of the configuration.
void apply(Backend& backend, const Update& update);

}  // namespace mindpipe
