#pragma once
#include <optional>

#include "state/shard_squares.h"

namespace mindpipe {

/// Bytes of what the scalars of a step are added up in, and of what arrives in the exchanges of each group.
struct ScalarBytes {
  std::size_t kept = 0, tensor_exchange = 0, data_exchange = 0, pipeline_exchange = 0;
};
/// `of_step`: empty where no step is decided. `sharded`: whether replicas hold parts of the gradients.
/// `squares`: what is measured of steps, if anything is.
ScalarBytes scalar_bytes(const Layout& layout, const DecisionScopes& of_step, bool sharded,
                         const std::optional<SquaresSize>& squares = {});

}  // namespace mindpipe
