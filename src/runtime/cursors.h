#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/bulk_parts.h"
#include "program/action.h"

namespace mindpipe {

/// Where to ask whether a started action has ended: who carries it, and its number there.
struct Request {
  enum Carrier : std::uint8_t { nobody, channels, reductions, copies };
  Carrier carrier = nobody;  ///< nobody: it was done when its start returned
  std::int64_t number = 0;
};

/// Goes over to other numbers of the actions that one comes after: `by` more each, if below 0 none. What
/// would stand before the list's first action has ended, and nobody waits for it.
inline void renumber(std::vector<int>& after, std::int64_t by) {
  for (int& earlier : after) earlier = static_cast<int>(earlier + by);
  std::erase_if(after, [](int earlier) { return earlier < 0; });
}

/// How far each queue of a list has come, for a host that carries the messages itself: the head of a queue
/// may start when what it comes after has ended.
class Cursors {
 public:
  /// An action that has been started and has not ended.
  struct Begun {
    Request request;
    std::int64_t moment = 0;  ///< where time is imitated: when it might begin
    std::int64_t met_ns = 0;  ///< where ends are put off: when it was seen to be done
  };
  /// One queue of this rank.
  struct Line {
    QueueKey key;
    std::vector<int> actions;
    std::size_t next = 0;   ///< the head
    std::size_t count = 0;  ///< entries of `begun` in use: the head and perhaps the one behind it
    std::array<Begun, parts_under_way> begun{};

    bool is_over() const { return next == actions.size(); }
    int head() const { return is_over() ? -1 : actions[next]; }
  };

  Cursors() = default;
  explicit Cursors(const std::vector<Action>& list) { grow(list, 0); }
  /// Goes on over a list that has grown: its first `dropped` actions, which had ended, are gone, and more
  /// stand behind the others.
  void grow(const std::vector<Action>& list, std::size_t dropped);
  /// How many actions at the list's beginning have ended, so that whoever comes after one of them need not
  /// ask.
  std::size_t ended_for_good() const;
  void restart();
  bool is_over() const;
  /// The action that the compute queue comes to next; -1: none is left.
  int compute_head() const { return compute.head(); }
  bool may_start(const Action& action) const {
    return std::all_of(action.after.begin(), action.after.end(), [&](int i) { return ended[i] != 0; });
  }
  /// The first action that `action` comes after and that has not ended; -1: all have.
  int missing(const Action& action) const;
  /// The action that the compute queue's head waits for; where there is none (-1), one of those that are
  /// left.
  int awaited(int compute_head, const std::vector<Action>& list) const;
  /// The queue that an action waits in, unless that is the compute queue; null: it is, or it has ended.
  const Line* line_of(const Action& action) const;

  Line compute;
  std::vector<Line> others;
  std::vector<char> ended;  ///< whether each action of the list has ended

 private:
  Line& line_for(const QueueKey& key);
};

}  // namespace mindpipe
