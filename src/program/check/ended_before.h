#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// For each action of one rank, how many actions of every queue have surely ended when it starts.
class EndedBefore {
 public:
  explicit EndedBefore(const std::vector<Action>& list) {
    std::map<QueueKey, int> number;
    for (const Action& action : list) number.try_emplace(queue_of(action), static_cast<int>(number.size()));
    std::vector<int> newest(number.size(), -1);
    std::vector<int> length(number.size(), 0);
    for (int index = 0; index < static_cast<int>(list.size()); ++index) {
      const int queue = number.at(queue_of(list[index]));
      std::vector<int> ended(number.size(), 0);
      const auto merge = [&](int earlier) {
        for (std::size_t q = 0; q < ended.size(); ++q) ended[q] = std::max(ended[q], ended_[earlier][q]);
        ended[queue_[earlier]] = std::max(ended[queue_[earlier]], place_[earlier] + 1);
      };
      if (newest[queue] >= 0) merge(newest[queue]);
      for (int earlier : list[index].after) merge(earlier);
      ended_.push_back(std::move(ended));
      queue_.push_back(queue);
      place_.push_back(length[queue]++);
      newest[queue] = index;
    }
  }
  bool operator()(int earlier, int later) const { return ended_[later][queue_[earlier]] > place_[earlier]; }

 private:
  std::vector<std::vector<int>> ended_;
  std::vector<int> queue_, place_;
};

}  // namespace mindpipe
