#pragma once
#include <map>
#include <vector>

#include "program/action.h"
#include "program/lists/buffer_ring.h"
#include "program/outline.h"

namespace mindpipe {

/// What one micro-batch sends through one cut. Places are entries of the rank's list, -1 where there is none.
struct Crossing {
  int writer = -1;  ///< the pass whose output this is (its last piece), when it leaves this rank
  int reader = -1, last_reader = -1;  ///< first and last piece of the pass that takes it in, when it arrives
  std::vector<int> messages;          ///< the sends or receives, one for each payload
  int cut = 0;
};

/// All crossings of one rank in the order of its list, ring by ring.
std::map<RingKey, std::vector<Crossing>> crossings_of(const std::vector<Action>& list, const Outline& outline,
                                                      int rank);

}  // namespace mindpipe
