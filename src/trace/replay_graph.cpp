#include "trace/replay_graph.h"

#include <fmt/core.h>

#include <algorithm>

namespace mindpipe {

ReplayGraph::ReplayGraph(const Coord& grid, const Program& program) : grid_(grid), program_(&program) {
  const int all = num_ranks(grid);
  first_.push_back(0);
  std::vector<std::vector<int>> ranks(program.ranks.size());
  for (int rank = 0; rank < all; ++rank) {
    list_.push_back(program_rank_at(grid, coord_at(grid, rank)));
    ranks[list_.back()].push_back(rank);
    const auto length = program.ranks[list_.back()].size();
    rank_.insert(rank_.end(), length, rank);
    first_.push_back(first_.back() + static_cast<int>(length));
  }
  const TaskGraph graph = make_task_graph(program, Follow::by_times);
  order_ = order_of_lists(program, graph, join_members(graph));
  order_.ranks = std::move(ranks);
}

/// Numbers the meetings. Gives back the first of each task, and where those of the last end.
std::vector<int> ReplayGraph::join_members(const TaskGraph& graph) {
  std::vector<int> first_meeting;
  meeting_.assign(rank_.size(), -1);
  const auto join = [&](const std::vector<int>& members) {
    for (const int member : members) meeting_[member] = meetings();
    members_.insert(members_.end(), members.begin(), members.end());
    first_member_.push_back(static_cast<int>(members_.size()));
  };
  const auto number = [&](const Place& place, int data, int tensor) {
    return first_[rank_that_runs(grid_, place.rank, data, tensor)] + place.index;
  };
  for (const std::vector<Place>& places : graph.members) {
    first_meeting.push_back(meetings());
    const Action& action = program_->at(places.front());
    if (!is_communication(action)) continue;
    std::vector<int> of_grid;
    for (int tensor = 0; tensor < grid_.tensor; ++tensor) {
      std::vector<int> of_data;
      for (int data = 0; data < grid_.data; ++data) {
        std::vector<int> of_replica;
        for (const Place& place : places) of_replica.push_back(number(place, data, tensor));
        if (is_message(action)) join(of_replica);
        of_data.insert(of_data.end(), of_replica.begin(), of_replica.end());
      }
      if (action.group == Members::data) join(of_data);
      of_grid.insert(of_grid.end(), of_data.begin(), of_data.end());
    }
    if (action.group == Members::grid) join(of_grid);
  }
  first_meeting.push_back(meetings());
  return first_meeting;
}

int ReplayGraph::sharer(int action, int tensor) const {
  Coord at = coord_at(grid_, rank_of(action));
  at.tensor = tensor;
  return first_[rank_at(grid_, at)] + index_of(action);
}

bool spans_nodes(const ReplayGraph& graph, const std::vector<std::string>& nodes, int action) {
  const int meeting = graph.meeting_of(action);
  if (meeting < 0 || nodes.empty()) return false;
  const std::span<const int> members = graph.members(meeting);
  return std::any_of(members.begin(), members.end(), [&](int member) {
    return nodes[graph.rank_of(member)] != nodes[graph.rank_of(action)];
  });
}

std::string ReplayGraph::name_of_rank(int rank) const {
  const Coord at = coord_at(grid_, rank);
  return fmt::format("rank {} ({}stage {}, data {}, tensor {})", rank,
                     grid_.supernet > 1 ? fmt::format("lane {}, ", at.supernet) : "", at.pipeline, at.data,
                     at.tensor);
}

std::string ReplayGraph::name_of(int action) const {
  return fmt::format("{} on {}", to_string(at(action)), name_of_rank(rank_of(action)));
}

}  // namespace mindpipe
