#include "core/sum_lists.h"

#include <algorithm>

namespace mindpipe {

std::optional<Subtree> node_of(int leaves, const Subtree& left, const Subtree& right) {
  for (int size = 1; size < leaves; size *= 2) {
    const bool is_left = left.first % (2 * size) == 0 && left.last == left.first + size;
    if (is_left && right.first == left.last && right.last == std::min(left.first + 2 * size, leaves))
      return Subtree{left.first, right.last};
  }
  return std::nullopt;
}

CounterStep counter_step(const SumTree& tree, int number) {
  const int newest = tree.open_after(number + 1) - 1;
  return {tree.open_after(number), newest, number + 1 < tree.leaves_here() ? newest : -1};
}

std::vector<Addition> additions_in_order(int sums) {
  std::vector<Addition> all;
  for (int next = 1; next < sums; ++next) all.push_back({0, next});
  return all;
}

}  // namespace mindpipe
