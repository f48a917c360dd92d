#pragma once
#include "comm/communicator.h"

namespace mindpipe {

/// The groups of this rank's process, one for each axis of the grid. Over data they sum scalars only:
/// gradients go by Reductions, beside the computation.
struct Groups {
  Communicator& tensor;
  Communicator& data;
  Communicator& pipeline;
};

}  // namespace mindpipe
