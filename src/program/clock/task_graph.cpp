#include "program/clock/task_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "core/bulk_parts.h"

namespace mindpipe {
namespace {

static_assert(parts_under_way == 2, "waits_in looks back by so many");

void join_messages(const Program& program, TaskGraph& graph) {
  using Channel = std::tuple<int, int, Payload>;
  std::map<Channel, std::vector<Place>> sent, received;
  for (const Place& place : program.places()) {
    const Action& action = program.at(place);
    if (!is_message(action)) continue;
    if (sends(action)) sent[{place.rank, action.peer, action.payload}].push_back(place);
    else received[{action.peer, place.rank, action.payload}].push_back(place);
  }
  for (auto& [channel, from] : sent) {
    auto& to = received[channel];
    const std::size_t both = std::min(from.size(), to.size());
    for (std::size_t k = 0; k < both; ++k) graph.members.push_back({from[k], to[k]});
    graph.alone.insert(graph.alone.end(), from.begin() + both, from.end());
  }
  for (auto& [channel, to] : received) {
    const std::size_t both = std::min(sent[channel].size(), to.size());
    graph.alone.insert(graph.alone.end(), to.begin() + both, to.end());
  }
}

void join_collectives(const Program& program, TaskGraph& graph) {
  // Each list's collectives of the group grid. Those of group data meet lists that are the same as this one.
  std::vector<std::vector<Place>> calls(program.ranks.size());
  for (const Place& place : program.places()) {
    if (!is_collective(program.at(place))) continue;
    if (program.at(place).group == Members::grid) calls[place.rank].push_back(place);
    else graph.members.push_back({place});
  }
  std::size_t all = calls.empty() ? 0 : calls[0].size();
  for (const auto& of_rank : calls) all = std::min(all, of_rank.size());
  for (std::size_t k = 0; k < all; ++k) {
    std::vector<Place> members;
    for (const auto& of_rank : calls) members.push_back(of_rank[k]);
    graph.members.push_back(members);
  }
  for (const auto& of_rank : calls)
    graph.alone.insert(graph.alone.end(), of_rank.begin() + all, of_rank.end());
}

}  // namespace

std::vector<ListWait> waits_in(const std::vector<Action>& list, Follow follow) {
  std::vector<ListWait> waits(list.size());
  std::map<QueueKey, std::array<int, 2>> newest;  // the last two of each queue
  for (int index = 0; index < static_cast<int>(list.size()); ++index) {
    std::array<int, 2>& before =
        newest.try_emplace(queue_of(list[index]), std::array<int, 2>{-1, -1}).first->second;
    const bool two_at_a_time = follow == Follow::by_times && list[index].group == Members::data;
    if (two_at_a_time) waits[index].begun = before[0];
    if (const int ended = before[two_at_a_time ? 1 : 0]; ended >= 0) waits[index].ended.push_back(ended);
    before = {index, before[0]};
    for (const int earlier : list[index].after)
      if (earlier >= 0 && earlier < static_cast<int>(list.size())) waits[index].ended.push_back(earlier);
  }
  return waits;
}

TaskGraph make_task_graph(const Program& program, Follow follow) {
  TaskGraph graph;
  join_messages(program, graph);
  join_collectives(program, graph);
  for (const Place& place : program.places())
    if (!is_communication(program.at(place))) graph.members.push_back({place});
  for (const Place& place : graph.alone) graph.members.push_back({place});

  for (const auto& list : program.ranks) graph.task_of.emplace_back(list.size(), -1);
  for (int task = 0; task < static_cast<int>(graph.members.size()); ++task)
    for (const Place& place : graph.members[task]) graph.task_of[place.rank][place.index] = task;

  graph.successors.resize(graph.members.size());
  graph.predecessors.assign(graph.members.size(), 0);
  graph.begins_next.assign(graph.members.size(), -1);
  const auto edge = [&](int from, int to) {
    graph.successors[from].push_back(to);
    ++graph.predecessors[to];
  };
  for (const Place& place : graph.alone) ++graph.predecessors[graph.task_of[place.rank][place.index]];
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    const auto& list = program.ranks[rank];
    const auto& task_of = graph.task_of[rank];
    const std::vector<ListWait> waits = waits_in(list, follow);
    std::vector<int> communication;
    for (int index = 0; index < static_cast<int>(list.size()); ++index) {
      if (const int begun = waits[index].begun; begun >= 0) {
        graph.begins_next[task_of[begun]] = task_of[index];
        ++graph.predecessors[task_of[index]];
      }
      for (const int ended : waits[index].ended) edge(task_of[ended], task_of[index]);
      if (is_communication(list[index])) communication.push_back(index);
    }
    if (follow != Follow::by_tickets) continue;
    std::stable_sort(communication.begin(), communication.end(),
                     [&](int a, int b) { return list[a].ticket < list[b].ticket; });
    for (std::size_t k = 1; k < communication.size(); ++k)
      edge(task_of[communication[k - 1]], task_of[communication[k]]);
  }
  return graph;
}

std::vector<int> tasks_stuck(const TaskGraph& graph) {
  std::vector<int> waits = graph.predecessors, ready, stuck;
  for (int task = 0; task < static_cast<int>(waits.size()); ++task)
    if (waits[task] == 0) ready.push_back(task);
  while (!ready.empty()) {
    const int task = ready.back();
    ready.pop_back();
    for (int next : graph.successors[task])
      if (--waits[next] == 0) ready.push_back(next);
  }
  for (int task = 0; task < static_cast<int>(waits.size()); ++task)
    if (waits[task] > 0) stuck.push_back(task);
  return stuck;
}

}  // namespace mindpipe
