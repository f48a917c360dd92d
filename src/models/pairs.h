#pragma once
#include "models/model.h"

namespace mindpipe {

struct DataConfig;

/// Says that a model's samples are pairs of a source and a target, and counts its speed in the target's
/// tokens.
void see_pairs(Model& model, const DataConfig& data, std::int64_t vocabulary);

}  // namespace mindpipe
