#pragma once
#include <cstdint>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// What lies somewhere in a rank's memory: who wrote it, and who has read it since.
struct Room {
  /// An entry of the rank's list, counted from the list's beginning.
  struct User {
    std::int64_t place = -1;
    Queue queue = Queue::compute;
  };
  void overwrite(const User& user) {
    before.swap(readers.empty() ? writers : readers);
    readers.clear();
    writers.assign(1, user);
  }
  std::vector<User> writers, readers;
  std::vector<User> before;  ///< the last users of what lay there before
};

/// The numbered one of rooms that are made when they are first named.
inline Room& room_at(std::vector<Room>& rooms, int number) {
  if (number >= static_cast<int>(rooms.size())) rooms.resize(number + 1);
  return rooms[number];
}

/// Lets the actions of a rank's list wait for those that use the same rooms. Nothing waits within the compute
/// queue, where each action ends before the next one begins.
class Ledger {
 public:
  /// Waits are counted from this entry of the list.
  void begin_at(std::int64_t place) { begin_ = place; }
  /// The action, whose last part is to stand at `place`, needs what the writers have made.
  void read(Room& room, std::int64_t place, Action& action) const;
  /// The action puts something else in the place of what the readers need, all of whom waited for the
  /// writers.
  void write(Room& room, std::int64_t place, Action& action) const;
  /// The action writes beside the newest writer, and waits for the same.
  void join(Room& room, std::int64_t place, Action& action) const {
    wait_for(room.before, action);
    room.writers.push_back({place, action.queue});
  }
  /// The action needs what the writers have made, and nobody overwrites it before the action has ended.
  void follow(const Room& room, Action& action) const { wait_for(room.writers, action); }

 private:
  void wait_for(const std::vector<Room::User>& users, Action& action) const;

  std::int64_t begin_ = 0;
};

}  // namespace mindpipe
