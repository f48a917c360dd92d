#pragma once
#include <map>
#include <utility>

#include "program/action.h"

namespace mindpipe {

/// What lies in the segments of a rank's swapped blocks, by block, and slot of the device or place of the
/// host: what entered the block.
struct PlayedSegments {
  std::map<std::pair<int, int>, float> device, host;

  float in(int block, int slot) { return device[{block, slot}]; }
  void copy(const Action& action) {
    float &here = device[{action.first, action.segment}], &there = host[{action.first, action.host}];
    if (action.kind == ActionKind::stash) there = here;
    else here = there;
  }
};

}  // namespace mindpipe
