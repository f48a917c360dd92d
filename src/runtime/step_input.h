#pragma once
#include <cstdint>

#include "layers/tape.h"

namespace mindpipe {

/// What a step, or a subnet, is fed: this rank's micro-batches, one after the other, and the numbers that its
/// updates need.
struct StepInput {
  FieldTensors
      fields;  ///< fields that this rank's blocks read: [micro_batches, samples, extents of the field]
  std::int64_t valid = 0;  ///< targets of this rank's micro-batches that count; of a subnet: of all its batch
  std::int64_t step = 0;   ///< names the step's randomness
  double rate = 0;
  const std::uint8_t* choice = nullptr;    ///< subnet: each block's candidate
  Tape::Mode mode = Tape::Mode::evaluate;  ///< mode of forwards alone
  std::int64_t calibrated = 0;             ///< subnet: micro-batches on which it was calibrated before
};

}  // namespace mindpipe
