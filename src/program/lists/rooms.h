#pragma once
#include <vector>

namespace mindpipe {

/// Numbered rooms of one stage that subnets in flight take in turn: slots, gradient slabs. Rooms for one
/// subnet are reserved for the oldest unfinished one. It can always finish, so nothing deadlocks.
class Rooms {
 public:
  /// `count` rooms, 0 for as many as are asked for; `needed`: the most that one subnet holds at a time, which
  /// are reserved; 0: none are.
  Rooms(int count, int needed) : count_(count), needed_(needed) {}

  /// Whether a subnet finds a room. `held_by_oldest`: how many the oldest subnet holds.
  bool has_room(bool is_oldest, int held_by_oldest) const {
    if (count_ == 0) return true;
    const int free = count_ - held_;
    return is_oldest || needed_ == 0 ? free > 0 : free + held_by_oldest > needed_;
  }
  /// The free room that was given back last, or a new one.
  int take();
  void give_back(int room);
  /// The most that were ever held at a time.
  int most() const { return most_; }

 private:
  int count_, needed_;
  int held_ = 0, most_ = 0;
  std::vector<int> free_;
};

}  // namespace mindpipe
