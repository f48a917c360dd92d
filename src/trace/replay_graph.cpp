#include "trace/replay_graph.h"

#include <fmt/core.h>

namespace mindpipe {

ReplayGraph::ReplayGraph(const Coord& grid, const Program& program) : grid_(grid), program_(&program) {
  const int all = num_ranks(grid);
  first_.push_back(0);
  for (int rank = 0; rank < all; ++rank) {
    list_.push_back(program_rank_at(grid, coord_at(grid, rank)));
    const auto length = program.ranks[list_.back()].size();
    rank_.insert(rank_.end(), length, rank);
    first_.push_back(first_.back() + static_cast<int>(length));
  }
  meeting_.assign(rank_.size(), -1);
  const TaskGraph graph = make_task_graph(program, Follow::by_times);
  const auto join = [&](const std::vector<int>& members) {
    for (const int member : members) meeting_[member] = meetings();
    members_.push_back(members);
  };
  const auto number = [&](const Place& place, int data, int tensor) {
    return first_[rank_that_runs(grid, place.rank, data, tensor)] + place.index;
  };
  for (const std::vector<Place>& places : graph.members) {
    const Action& action = program.at(places.front());
    if (!is_communication(action)) continue;
    std::vector<int> of_grid;
    for (int tensor = 0; tensor < grid.tensor; ++tensor) {
      std::vector<int> of_data;
      for (int data = 0; data < grid.data; ++data) {
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
  for (const std::vector<Action>& list : program.ranks) {
    waits_.push_back(waits_in(list, Follow::by_times));
    followers_.emplace_back(list.size());
    begins_next_.emplace_back(list.size(), -1);
    for (int index = 0; index < static_cast<int>(list.size()); ++index) {
      for (const int before : waits_.back()[index].ended) followers_.back()[before].push_back(index);
      if (const int begun = waits_.back()[index].begun; begun >= 0) begins_next_.back()[begun] = index;
    }
  }
}

int ReplayGraph::sharer(int action, int tensor) const {
  Coord at = coord_at(grid_, rank_of(action));
  at.tensor = tensor;
  return first_[rank_at(grid_, at)] + index_of(action);
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
