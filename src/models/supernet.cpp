#include "models/make.h"
#include "models/space_model.h"

namespace mindpipe::supernet {

/// Makes all networks of a space at once: each block is a choice among all its candidates.
std::unique_ptr<Model> make(const Settings& m, const DataConfig& data, const TrainConfig& train,
                            const LayerContext& context) {
  return make_of_space(data, train, m, context, nullptr);
}

}  // namespace mindpipe::supernet
