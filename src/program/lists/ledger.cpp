#include "program/lists/ledger.h"

namespace mindpipe {

void Ledger::wait_for(const std::vector<Room::User>& users, Action& action) const {
  for (const Room::User& user : users)
    if (user.queue != Queue::compute || action.queue != Queue::compute)
      action.after.push_back(static_cast<int>(user.place - begin_));
}

void Ledger::read(Room& room, std::int64_t place, Action& action) const {
  wait_for(room.writers, action);
  if (action.queue == Queue::compute)
    std::erase_if(room.readers, [](const Room::User& user) { return user.queue == Queue::compute; });
  room.readers.push_back({place, action.queue});
}

void Ledger::write(Room& room, std::int64_t place, Action& action) const {
  wait_for(room.readers.empty() ? room.writers : room.readers, action);
  room.overwrite({place, action.queue});
}

}  // namespace mindpipe
