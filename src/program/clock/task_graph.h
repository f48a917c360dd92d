#pragma once
#include <cstdint>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// How tasks follow each other: one by one in their queues; moreover in the order of tickets; or in time, as
/// an executor has them, of a group's calls two at a time.
enum class Follow : std::uint8_t { one_by_one, by_tickets, by_times };

/// The actions of all ranks as tasks that start when others have ended: a compute action is one task, a send
/// and its receive are one, a collective's calls on all ranks of the program are one. A task waits for its
/// members' predecessors in their queues and their `after`.
struct TaskGraph {
  std::vector<std::vector<Place>> members;  ///< members of each task; a send stands before its receive
  std::vector<std::vector<int>> task_of;    ///< [rank][index]
  std::vector<std::vector<int>> successors;
  std::vector<int> predecessors;  ///< how many
  std::vector<int> begins_next;   ///< the task that may begin once this one has begun; -1: none
  std::vector<Place> alone;       ///< messages and collectives that have no partner; their tasks never start
};

/// Whom an entry of a list waits for before it begins: entries of its list that must have ended, the one
/// before it in its queue among them; and, where two of a queue may be under way, the one that must have
/// begun.
struct ListWait {
  std::vector<int> ended;
  int begun = -1;
  /// Whether the entry begins its step.
  bool is_for_nothing() const { return ended.empty() && begun < 0; }
};
/// The waits of all entries of a list, without those of tickets.
std::vector<ListWait> waits_in(const std::vector<Action>& list, Follow follow);

/// Matches the k-th send of a channel with its k-th receive, and the k-th call of a group with the k-th calls
/// of its members. By tickets a communication also waits until all communication of its ranks with smaller
/// ones has started.
TaskGraph make_task_graph(const Program& program, Follow follow = Follow::one_by_one);

/// Runs the graph without time; returns the tasks that can never start, empty when all end.
std::vector<int> tasks_stuck(const TaskGraph& graph);

}  // namespace mindpipe
