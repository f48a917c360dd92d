#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/replay_order.h"
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
  int meetings() const { return static_cast<int>(first_member_.size()) - 1; }
  int first_of(int rank) const { return first_[rank]; }
  int rank_of(int action) const { return rank_[action]; }
  int stage_of(int action) const { return list_of(action) % grid_.pipeline; }
  bool runs_same_list(int rank, int other) const { return list_[rank] == list_[other]; }
  int index_of(int action) const { return action - first_[rank_[action]]; }
  const Action& at(int action) const { return program_->ranks[list_of(action)][index_of(action)]; }

  /// The meeting of a communication; -1: it meets nobody.
  int meeting_of(int action) const { return meeting_[action]; }
  std::span<const int> members(int meeting) const {
    return std::span(members_).subspan(first_member_[meeting],
                                       first_member_[meeting + 1] - first_member_[meeting]);
  }
  /// An action's like on the rank of tensor coordinate `tensor` among those that share its products.
  int sharer(int action, int tensor) const;
  /// Whom an action waits for, by numbers in its list.
  const ListWait& wait_of(int action) const { return order_.waits[list_of(action)][index_of(action)]; }

  const ReplayOrder& order() const { return order_; }

  /// "rank 3 (stage 1, data 0, tensor 1)"
  std::string name_of_rank(int rank) const;
  /// "forward of micro-batch 3, blocks 2..4 on rank 3 (...)"
  std::string name_of(int action) const;

 private:
  int list_of(int action) const { return list_[rank_[action]]; }
  std::vector<int> join_members(const TaskGraph& graph);

  Coord grid_;
  const Program* program_;
  std::vector<int> first_, rank_, list_, meeting_;  ///< `list_`: by rank
  std::vector<int> first_member_{0}, members_;
  ReplayOrder order_;
};

/// Whether those whom an action meets are on several of the nodes, named by rank; none: all are in one.
bool spans_nodes(const ReplayGraph& graph, const std::vector<std::string>& nodes, int action);

}  // namespace mindpipe
