#include "program/check/check_communication.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "program/clock/task_graph.h"

namespace mindpipe {
namespace {

/// Says which message of a channel this is: both ends must agree on it.
auto identity_of(const Action& action) {
  return std::tuple(action.owner.number, action.micro_batch, action.shard, action.first, action.last,
                    action.unit, action.part, action.parts, action.bytes, action.payload, action.units);
}

/// Compares what the ranks of a program say of the same communication.
class Partners {
 public:
  Partners(const Program& program, Findings& findings) : program_(program), findings_(findings) {}

  void run() {
    for (const Place& place : program_.places()) {
      const Action& action = program_.at(place);
      if (is_message(action)) (sends(action) ? sent_ : received_)[channel_of(place)].push_back(place);
      else if (action.group == Members::grid) calls_[place.rank].push_back(place);
      else if (is_collective(action)) is_of(place, place);
    }
    for (const auto& [channel, places] : sent_) compare_ends(places, received_[channel]);
    for (const auto& [channel, places] : received_)
      if (sent_.count(channel) == 0) compare_ends({}, places);
    compare_calls();
  }

 private:
  using Channel = std::tuple<int, int, Payload>;  // from, to
  using Places = std::vector<Place>;

  Channel channel_of(const Place& place) const {
    const Action& action = program_.at(place);
    return sends(action) ? Channel{place.rank, action.peer, action.payload}
                         : Channel{action.peer, place.rank, action.payload};
  }

  template <class... Parts>
  void wrong(const Place& place, fmt::format_string<Parts...> sentence, Parts&&... parts) {
    findings_.add("rank {}, action {} ({}): {}", place.rank, place.index, to_string(program_.at(place)),
                  fmt::format(sentence, std::forward<Parts>(parts)...));
  }

  /// Notes whose ticket an action has: that of the task of which `first` is a member, too.
  void is_of(const Place& first, const Place& place) {
    const std::int64_t ticket = program_.at(place).ticket;
    if (tickets_.try_emplace(ticket, first).first->second != first)
      wrong(place, "ticket {} is given twice", ticket);
  }

  void compare(const Place& first, const Place& place, bool is_same) {
    const Action &one = program_.at(first), &other = program_.at(place);
    if (!is_same)
      wrong(first, "meets action {} of rank {} ({}), which is something else", place.index, place.rank,
            to_string(other));
    else if (one.ticket != other.ticket)
      wrong(first, "has ticket {}, but {} on rank {}", one.ticket, other.ticket, place.rank);
  }

  void compare_ends(const Places& sent, const Places& received) {
    const std::size_t both = std::min(sent.size(), received.size());
    for (std::size_t k = 0; k < both; ++k) {
      is_of(sent[k], sent[k]);
      is_of(sent[k], received[k]);
      compare(sent[k], received[k],
              identity_of(program_.at(sent[k])) == identity_of(program_.at(received[k])));
    }
    for (const Places* places : {&sent, &received})
      for (std::size_t k = both; k < places->size(); ++k) {
        const Action& action = program_.at((*places)[k]);
        wrong((*places)[k], "rank {} has no {} for it", action.peer, sends(action) ? "receive" : "send");
      }
  }

  void compare_calls() {
    std::size_t all = program_.ranks.empty() ? 0 : calls_[0].size();
    for (int rank = 0; rank < static_cast<int>(program_.ranks.size()); ++rank)
      all = std::min(all, calls_[rank].size());
    for (const auto& [rank, calls] : calls_) {
      for (std::size_t k = 0; k < all; ++k) {
        const Place& first = calls_[0][k];
        const Action &one = program_.at(first), &other = program_.at(calls[k]);
        is_of(first, calls[k]);
        compare(first, calls[k],
                one.kind == other.kind && one.unit == other.unit && one.bytes == other.bytes);
      }
      for (std::size_t k = all; k < calls.size(); ++k)
        wrong(calls[k], "some other member of group {} calls fewer times", Members::grid);
    }
  }

  const Program& program_;
  Findings& findings_;
  std::map<Channel, Places> sent_, received_;
  std::map<int, Places> calls_;            // of each rank: collectives of the whole grid
  std::map<std::int64_t, Place> tickets_;  // whose it is: the first member of a task
};

void explain_standstill(const Program& program, bool in_ticket_order, Findings& findings) {
  const TaskGraph graph = make_task_graph(program, in_ticket_order ? Follow::by_tickets : Follow::one_by_one);
  const std::vector<int> stuck = tasks_stuck(graph);
  if (stuck.empty()) return;
  const char* rule = in_ticket_order ? "in ticket order" : "with free channels";
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    // The first action of each rank that never starts says where it stands still.
    const auto& task_of = graph.task_of[rank];
    for (int index = 0; index < static_cast<int>(task_of.size()); ++index)
      if (std::binary_search(stuck.begin(), stuck.end(), task_of[index])) {
        findings.add(
            "rank {}, action {} ({}): never starts: the lists deadlock {} ({} of {} tasks stand still)", rank,
            index, to_string(program.ranks[rank][index]), rule, stuck.size(), graph.members.size());
        break;
      }
  }
}

}  // namespace

void check_partners(const Program& program, Findings& findings) { Partners(program, findings).run(); }

void explain_standstill(const Program& program, Findings& findings) {
  explain_standstill(program, false, findings);
  explain_standstill(program, true, findings);
}

}  // namespace mindpipe
