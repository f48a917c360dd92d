#include <algorithm>
#include <map>
#include <tuple>

#include "program/check/checker_parts.h"
#include "program/clock/task_graph.h"

namespace mindpipe {
namespace {

/// Says which message of a channel this is: both ends must agree on it.
auto identity_of(const Action& action) {
  return std::tuple(action.subnet, action.micro_batch, action.shard, action.first, action.last, action.unit,
                    action.part, action.parts, action.bytes, action.payload);
}

/// The ends of every message and the calls of every collective, matched k-th with k-th by the graph.
void check_partners(const Program& program, const TaskGraph& graph, Findings& findings) {
  for (const Place& place : graph.alone) {
    const Action& action = program.at(place);
    if (is_message(action))
      findings.add(place.rank, place.index, "rank {} has no {} for it", action.peer,
                   sends(action) ? "receive" : "send");
    else
      findings.add(place.rank, place.index, "some other member of group {} calls fewer times",
                   name_of(action.group));
  }
  for (const auto& members : graph.members) {
    const Place first = members[0];
    const Action& one = program.at(first);
    for (std::size_t k = 1; k < members.size(); ++k) {
      const Action& other = program.at(members[k]);
      const bool same = is_message(one)
                            ? identity_of(one) == identity_of(other)
                            : one.kind == other.kind && one.unit == other.unit && one.bytes == other.bytes;
      if (!same)
        findings.add(first.rank, first.index, "meets action {} of rank {} ({}), which is something else",
                     members[k].index, members[k].rank, to_string(other));
      else if (one.ticket != other.ticket)
        findings.add(first.rank, first.index, "has ticket {}, but {} on rank {}", one.ticket, other.ticket,
                     members[k].rank);
    }
  }
}

void check_tickets(const Program& program, const TaskGraph& graph, Findings& findings) {
  std::map<std::int64_t, int> task_of_ticket;
  std::vector<std::int64_t> newest(program.ranks.size(), -1);
  for (const auto& [rank, index] : program.places()) {
    const Action& action = program.ranks[rank][index];
    if (!is_communication(action)) continue;
    if (action.ticket <= newest[rank])
      findings.add(rank, index, "ticket {} comes after ticket {} in the list (they must ascend)",
                   action.ticket, newest[rank]);
    newest[rank] = std::max(newest[rank], action.ticket);
    const int task = graph.task_of[rank][index];
    if (task_of_ticket.try_emplace(action.ticket, task).first->second != task)
      findings.add(rank, index, "ticket {} is given twice", action.ticket);
  }
}

void check_replay(const Program& program, bool in_ticket_order, Findings& findings) {
  const TaskGraph graph = make_task_graph(program, in_ticket_order);
  const std::vector<int> stuck = tasks_stuck(graph);
  if (stuck.empty()) return;
  const char* rule = in_ticket_order ? "in ticket order" : "with free channels";
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    // The first action of each rank that never starts says where it stands still.
    const auto& task_of = graph.task_of[rank];
    for (int index = 0; index < static_cast<int>(task_of.size()); ++index)
      if (std::binary_search(stuck.begin(), stuck.end(), task_of[index])) {
        findings.add(rank, index, "never starts: the lists deadlock {} ({} of {} tasks stand still)", rule,
                     stuck.size(), graph.members.size());
        break;
      }
  }
}

}  // namespace

void check_communication(const Program& program, Findings& findings) {
  const TaskGraph graph = make_task_graph(program);
  check_partners(program, graph, findings);
  check_tickets(program, graph, findings);
  check_replay(program, false, findings);
  check_replay(program, true, findings);
}

}  // namespace mindpipe
