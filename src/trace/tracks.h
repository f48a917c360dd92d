#pragma once
#include <string>
#include <vector>

#include "program/action.h"
#include "trace/recorder.h"

namespace mindpipe {

/// Where a rank's slices are drawn. Each queue has a track; where slices of a queue overlap (parts of a sum
/// that travel at a time), as many as run at a time, because the format's slices may nest on a track but not
/// cross.
struct Tracks {
  std::vector<std::string> names;    ///< of each track; the compute queue's comes first
  std::vector<std::vector<int>> of;  ///< the track of each action, [step][action of the list]
};
Tracks tracks_of(const std::vector<Action>& list, const std::vector<std::vector<Recorder::Times>>& steps);

/// Each slice's lane: the lowest whose last slice has ended. No two slices of one lane overlap. What never
/// ended gets lane 0 and holds none.
std::vector<int> lanes_of(const std::vector<Recorder::Times>& slices);

}  // namespace mindpipe
