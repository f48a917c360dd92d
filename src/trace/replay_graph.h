#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program/clock/task_graph.h"
#include "trace/step_trace.h"

namespace mindpipe {

/// A step's actions on all ranks of a grid, numbered rank after rank, and who meets whom: messages within
/// each replica, sums over data within each stage, sums of scalars on the whole grid.
class ReplayGraph {
 public:
  ReplayGraph(const Coord& grid, const Program& program);

  const Coord& grid() const { return grid_; }
  int ranks() const { return static_cast<int>(first_.size()) - 1; }
  int actions() const { return first_.back(); }
  int meetings() const { return static_cast<int>(members_.size()); }
  int first_of(int rank) const { return first_[rank]; }
  int rank_of(int action) const { return rank_[action]; }
  int stage_of(int action) const { return list_of(action) % grid_.pipeline; }
  bool runs_same_list(int rank, int other) const { return list_[rank] == list_[other]; }
  int index_of(int action) const { return action - first_[rank_[action]]; }
  const Action& at(int action) const { return program_->ranks[list_of(action)][index_of(action)]; }

  /// The meeting of a communication; -1: it meets nobody.
  int meeting_of(int action) const { return meeting_[action]; }
  const std::vector<int>& members(int meeting) const { return members_[meeting]; }
  /// An action's like on the rank of tensor coordinate `tensor` among those that share its products.
  int sharer(int action, int tensor) const;
  /// Whom an action waits for, by numbers in its list.
  const ListWait& wait_of(int action) const { return waits_[list_of(action)][index_of(action)]; }
  /// Who waits for an action's end, and the one that waits for its begin (-1: none), by numbers in its list.
  const std::vector<int>& followers(int action) const {
    return followers_[list_of(action)][index_of(action)];
  }
  int begins_next(int action) const { return begins_next_[list_of(action)][index_of(action)]; }

  /// "rank 3 (stage 1, data 0, tensor 1)"
  std::string name_of_rank(int rank) const;
  /// "forward of micro-batch 3, blocks 2..4 on rank 3 (...)"
  std::string name_of(int action) const;

 private:
  int list_of(int action) const { return list_[rank_[action]]; }

  Coord grid_;
  const Program* program_;
  std::vector<int> first_, rank_, list_, meeting_;  ///< `list_`: by rank
  std::vector<std::vector<int>> members_;
  std::vector<std::vector<ListWait>> waits_;
  std::vector<std::vector<std::vector<int>>> followers_;
  std::vector<std::vector<int>> begins_next_;
};

}  // namespace mindpipe
