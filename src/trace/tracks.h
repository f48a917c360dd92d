#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "program/action.h"
#include "trace/recorder.h"

namespace mindpipe {

/// Tracks on which a rank's slices are drawn. Each queue has a track; where its slices overlap (parts of a
/// sum), as many as run at a time, because the format's slices may nest on a track but not cross.
struct Tracks {
  std::vector<std::string> names;    ///< names of the tracks, the compute queue's first
  std::vector<std::vector<int>> of;  ///< the track of each action, [step][action of the list]
};
/// `peers`: what the ranks of a program are called, whose messages have tracks.
Tracks tracks_of(const std::vector<Action>& list, const std::vector<std::vector<Recorder::Times>>& steps,
                 std::string_view peers = "stage");

/// Lane of each slice: the lowest whose last slice has ended. No two slices of one lane overlap. A slice that
/// never ended gets lane 0 and holds none.
std::vector<int> lanes_of(const std::vector<Recorder::Times>& slices);

}  // namespace mindpipe
