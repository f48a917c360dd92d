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
  std::vector<std::string> names;  ///< names of the tracks, the compute queue's first
  std::vector<int> of;             ///< the track of each action
};
/// `actions`: in the order of their list, of a list that is run again and again run behind run; times[i]
/// those of actions[i]. `peers`: what the ranks of a program are called, whose messages have tracks.
Tracks tracks_of(const std::vector<Action>& actions, const std::vector<Recorder::Times>& times,
                 std::string_view peers = "stage");

/// Lane of each slice: the lowest whose last slice has ended. No two slices of one lane overlap. A slice that
/// never ended gets lane 0 and holds none.
std::vector<int> lanes_of(const std::vector<Recorder::Times>& slices);

}  // namespace mindpipe
