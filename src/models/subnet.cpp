#include "models/make.h"
#include "models/space_model.h"

namespace mindpipe::subnet {

/// Makes one network of a space: each block is the candidate that is chosen, under its name in the space.
std::unique_ptr<Model> make(const Settings& m, const DataConfig& data, const TrainConfig& train,
                            const LayerContext& context) {
  return make_of_space(data, train, m, context, &m.choice);
}

}  // namespace mindpipe::subnet
