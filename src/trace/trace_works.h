#pragma once
#include <compare>
#include <cstddef>
#include <vector>

#include "trace/replay_graph.h"

namespace mindpipe {

/// The pieces of work that a trace has, by number, and which actions do each of them.
class TraceWorks {
 public:
  /// Work that is the same on all ranks of a stage, and for all micro-batches.
  struct Work {
    int stage = 0;
    ActionKind kind = ActionKind::forward;
    int chunk = 0, first = 0, last = 0, unit = -1;
    auto operator<=>(const Work&) const = default;
  };

  explicit TraceWorks(const ReplayGraph& graph);

  int count() const { return static_cast<int>(all_.size()); }
  const std::vector<Work>& all() const { return all_; }
  const Work& at(int work) const { return all_[work]; }
  /// The work of an action; -1: it computes nothing.
  int of(int action) const { return of_[action]; }
  /// The actions by which a rank does a work, at its place.
  std::size_t place(int rank, int work) const {
    return static_cast<std::size_t>(rank) * all_.size() + static_cast<std::size_t>(work);
  }
  const std::vector<std::vector<int>>& actions() const { return actions_; }

 private:
  std::vector<Work> all_;
  std::vector<int> of_;                    ///< by action
  std::vector<std::vector<int>> actions_;  ///< [place]
};

}  // namespace mindpipe
