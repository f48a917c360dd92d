#pragma once
#include <memory>
#include <vector>

#include "models/model.h"

namespace mindpipe {

struct DataConfig;
struct SpaceSettings;
struct TrainConfig;

/// Makes the model of a space: each block is the candidate of `choice`, or, without one, may be all.
std::unique_ptr<Model> make_of_space(const DataConfig& data, const TrainConfig& train,
                                     const SpaceSettings& settings, const LayerContext& context,
                                     const std::vector<int>* choice);

}  // namespace mindpipe
