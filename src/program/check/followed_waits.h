#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// An entry of one rank's list, counted from the list's beginning, and the queue in which it stands.
struct ListEntry {
  std::int64_t place = -1;
  int queue = 0;
  bool exists() const { return place >= 0; }
};

/// Knows of a list that is read action by action what has surely ended when the newest one begins: what it
/// waits for, what that waited for, and so on, by queues too. A queue ends in order. It begins an action once
/// the one before has ended; a sum or gather, which may run beside one other, once the one before has begun
/// and the one before that has ended.
class FollowedWaits {
 public:
  /// Takes out of the next action's `after`, and sorts, what ends anyhow before the action begins.
  void thin(Action& action, std::int64_t begin);
  /// Reads the next action, whose `after` counts from entry `begin` on.
  void add(const Action& action, std::int64_t begin);
  ListEntry newest() const { return newest_; }
  bool has_ended(const ListEntry& earlier) const;

 private:
  /// The newest entry that has ended, by queue.
  using Clock = std::vector<std::int64_t>;
  struct Line {
    Clock begins;  ///< what has ended when the next action of the queue begins
    Clock ends;    ///< what has ended when its newest action has
    bool runs_ahead = false;
  };
  /// How many entries' clocks are kept, and of how many more the queues. What waits for an entry whose clock
  /// is not kept proves no more than that this one has ended, and those before it in its queue.
  static constexpr std::int64_t kept = 4096, known = std::int64_t{1} << 20;

  static void merge(Clock& into, const Clock& other);
  /// What has ended where an earlier entry has.
  void merge_ended(Clock& into, std::int64_t place, std::int64_t newest) const;
  int queue_number(const Action& action);

  std::map<QueueKey, int> numbers_;
  std::vector<Line> lines_;
  std::vector<Clock> ends_;  ///< what has ended when the newest entries have
  std::vector<int> queues_;  ///< queues of the newest entries
  ListEntry newest_;
  Clock now_;
  std::vector<std::int64_t> awaited_;  ///< by the newest action itself
};

}  // namespace mindpipe
