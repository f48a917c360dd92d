#pragma once
#include "config/models/table.h"
#include "models/model.h"

namespace mindpipe {

struct DataConfig;
struct TrainConfig;

// What makes a model, one function for each kind of config/models/table.h, in its namespace.
#define MINDPIPE_DECLARE_MODEL(model, ...)                                                                \
  namespace model {                                                                                       \
  std::unique_ptr<Model> make(const Settings& settings, const DataConfig& data, const TrainConfig& train, \
                              const LayerContext& context);                                               \
  }
MINDPIPE_MODELS(MINDPIPE_DECLARE_MODEL)
#undef MINDPIPE_DECLARE_MODEL

}  // namespace mindpipe
