#pragma once
#include "program/lists/forward_stretches.h"

namespace mindpipe {

/// The lists of all ranks through which so many batches go.
inline Program forward_program(const Outline& outline, const Network& network, int batches) {
  Program program;
  for (int rank = 0; rank < outline.stages; ++rank) {
    ForwardStretches list(outline, network, forward_rings(outline, rank), rank);
    for (int batch = 0; batch < batches; ++batch) list.add({});
    program.ranks.push_back(list.write(true).actions);
  }
  return program;
}

}  // namespace mindpipe
