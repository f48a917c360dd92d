#include "models/space_model.h"

namespace mindpipe::supernet {

/// Makes all networks of a space at once: each block is a choice among all its candidates.
std::unique_ptr<Model> make(const Config& config, const LayerContext& context) {
  return make_of_space(config, config.model.supernet, context, nullptr);
}

}  // namespace mindpipe::supernet
