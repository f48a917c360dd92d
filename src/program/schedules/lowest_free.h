#pragma once
#include <algorithm>
#include <functional>
#include <vector>

namespace mindpipe {

/// Gives numbers, always the lowest that is free.
class LowestFree {
 public:
  int take() {
    if (free_.empty()) return next_++;
    std::pop_heap(free_.begin(), free_.end(), std::greater<>());
    const int number = free_.back();
    free_.pop_back();
    return number;
  }
  void give_back(int number) {
    free_.push_back(number);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
  }

 private:
  std::vector<int> free_;  // a heap
  int next_ = 0;
};

}  // namespace mindpipe
