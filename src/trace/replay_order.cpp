#include "trace/replay_order.h"

namespace mindpipe {
namespace {

/// Lets entries begin whose waits are over, until none is left.
class Ordering {
 public:
  Ordering(const Program& program, const TaskGraph& graph, const std::vector<int>& first_meeting)
      : program_(program), graph_(graph), first_meeting_(first_meeting), come_(graph.members.size(), 0) {
    for (int list = 0; list < static_cast<int>(program.ranks.size()); ++list) {
      const std::vector<ListWait>& waits =
          order_.waits.emplace_back(waits_in(program.ranks[list], Follow::by_times));
      const int length = static_cast<int>(waits.size());
      followers_.emplace_back(length);
      begins_next_.emplace_back(length, -1);
      left_.emplace_back(length, 0);
      for (int index = 0; index < length; ++index) {
        const ListWait& wait = waits[index];
        for (const int before : wait.ended) followers_[list][before].push_back(index);
        if (wait.begun >= 0) begins_next_[list][wait.begun] = index;
        left_[list][index] = static_cast<int>(wait.ended.size()) + (wait.begun >= 0 ? 1 : 0);
      }
    }
  }

  ReplayOrder order() {
    const std::vector<Place> places = program_.places();
    for (const Place& place : places)
      if (left_[place.rank][place.index] == 0) ready_.push_back(place);
    while (!ready_.empty()) {
      const Place place = ready_.back();
      ready_.pop_back();
      begin(place);
    }
    order_.ends = order_.turns.size() == places.size();
    return std::move(order_);
  }

 private:
  void begin(const Place& place) {
    const int task = graph_.task_of[place.rank][place.index];
    const bool all_came = ++come_[task] == static_cast<int>(graph_.members[task].size());
    order_.turns.push_back(
        {place, all_came ? first_meeting_[task] : 0, all_came ? first_meeting_[task + 1] : 0});
    if (const int next = begins_next_[place.rank][place.index]; next >= 0) release({place.rank, next});
    if (!all_came) return;
    for (const Place& member : graph_.members[task])
      for (const int follower : followers_[member.rank][member.index]) release({member.rank, follower});
  }

  void release(const Place& place) {
    if (--left_[place.rank][place.index] == 0) ready_.push_back(place);
  }

  const Program& program_;
  const TaskGraph& graph_;
  const std::vector<int>& first_meeting_;
  std::vector<std::vector<std::vector<int>>> followers_;  ///< who waits for an entry's end
  std::vector<std::vector<int>> begins_next_;             ///< who waits for its begin; -1: nobody
  std::vector<std::vector<int>> left_;                    ///< for how many an entry still waits
  std::vector<int> come_;                                 ///< members of each task that have begun
  std::vector<Place> ready_;
  ReplayOrder order_;
};

}  // namespace

ReplayOrder order_of_lists(const Program& program, const TaskGraph& graph,
                           const std::vector<int>& first_meeting) {
  return Ordering(program, graph, first_meeting).order();
}

}  // namespace mindpipe
