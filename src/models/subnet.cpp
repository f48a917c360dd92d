#include "models/space_model.h"

namespace mindpipe::subnet {

/// Makes one network of a space: each block is the candidate that is chosen, under its name in the space.
std::unique_ptr<Model> make(const Config& config, const LayerContext& context) {
  const Settings& m = config.model.subnet;
  return make_of_space(config, m, context, &m.choice);
}

}  // namespace mindpipe::subnet
