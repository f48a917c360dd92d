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
  CounterStep step;
  const int newest = tree.open_after(number + 1) - 1;
  for (int open = tree.open_after(number); open-- > newest;) step.takes.push_back(open);
  if (number + 1 < tree.leaves_here()) step.moves_to = newest;
  return step;
}

std::vector<Addition> additions_in_order(int sums) {
  std::vector<Addition> all;
  for (int next = 1; next < sums; ++next) all.push_back({0, next});
  return all;
}

}  // namespace mindpipe
