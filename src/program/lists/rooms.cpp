#include "program/lists/rooms.h"

#include <algorithm>

namespace mindpipe {

int Rooms::take() {
  const int fresh = held_ + static_cast<int>(free_.size());
  most_ = std::max(most_, ++held_);
  if (free_.empty()) return fresh;
  const int room = free_.back();
  free_.pop_back();
  return room;
}

void Rooms::give_back(int room) {
  --held_;
  free_.push_back(room);
}

}  // namespace mindpipe
