#include "core/sum_tree.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/check.h"

namespace mindpipe {
namespace {

/// The end of the largest subtree that begins at leaf `first` and does not go beyond `last`.
int end_of_largest(int leaves, int first, int last) {
  int size = 1;
  while (first % (2 * size) == 0 && first + size < last && std::min(first + 2 * size, leaves) <= last)
    size *= 2;
  return std::min(first + size, last);
}

int count_largest(int leaves, int first, int last) {
  int count = 0;
  for (; first < last; ++count) first = end_of_largest(leaves, first, last);
  return count;
}

}  // namespace

std::vector<Subtree> largest_subtrees(int leaves, int first, int last) {
  std::vector<Subtree> found;
  for (; first < last; first = found.back().last)
    found.push_back({first, end_of_largest(leaves, first, last)});
  return found;
}

int most_roots(int leaves, int ranks) {
  if (std::has_single_bit(static_cast<unsigned>(leaves / ranks))) return 1;  // each has a whole subtree
  int most = 0;
  for (int rank = 0, each = leaves / ranks; rank < ranks; ++rank)
    most = std::max(most, count_largest(leaves, rank * each, (rank + 1) * each));
  return most;
}

int most_levels(int leaves, int ranks) {
  int most = 0;
  for (int rank = 0, each = leaves / ranks; rank < ranks && each > 1; ++rank)
    for (int first = rank * each, count = 1; count < each; ++count)
      most = std::max(most, count_largest(leaves, first, first + count));
  return most;
}

std::vector<Addition> additions(int leaves, std::span<const Subtree> sums) {
  constexpr int nobody = -1;
  std::vector<int> begins_at(static_cast<std::size_t>(leaves), nobody), ends;
  for (const Subtree& sum : sums) {
    begins_at[sum.first] = static_cast<int>(ends.size());
    ends.push_back(sum.last);
  }
  std::vector<Addition> all;
  for (int stride = 1; stride < leaves; stride *= 2)
    for (int first = 0; first + stride < leaves; first += 2 * stride) {
      const int left = begins_at[first], right = begins_at[first + stride];
      if (left == nobody || right == nobody || ends[right] != std::min(first + 2 * stride, leaves)) continue;
      all.push_back({left, right});
      ends[left] = ends[right];
    }
  return all;
}

std::vector<std::uint8_t> joins_of(std::span<const Addition> tree, int count) {
  if (static_cast<int>(tree.size()) + 1 != count) return {};
  std::vector<std::uint8_t> joins(static_cast<std::size_t>(count));
  std::vector<int> last(static_cast<std::size_t>(count));  // of the sums that this one is the first of
  std::iota(last.begin(), last.end(), 0);
  for (const auto& [left, right] : tree) {
    ++joins[last[right]];
    last[left] = last[right];
  }
  return joins;
}

SumTree::SumTree(int leaves, int ranks, int rank) : leaves_(leaves), ranks_(ranks), rank_(rank) {
  MP_CHECK(ranks >= 1 && leaves >= 1 && leaves % ranks == 0 && rank >= 0 && rank < ranks,
           "rank {} of {} in a tree over {} leaves", rank, ranks, leaves);
  std::vector<Subtree> here, everywhere;
  for (int other = 0; other < ranks; ++other) {
    const int first = other * leaves_here();
    const std::vector<Subtree> found = largest_subtrees(leaves, first, first + leaves_here());
    roots_of_.push_back(static_cast<int>(found.size()));
    everywhere.insert(everywhere.end(), found.begin(), found.end());
    if (other == rank) roots_ = found;
  }
  // Behind all ranks' stands the fewest of any rank.
  roots_of_.push_back(*std::min_element(roots_of_.begin(), roots_of_.end()));
  for (int leaf = first_leaf(); leaf < first_leaf() + leaves_here(); ++leaf) here.push_back({leaf, leaf + 1});
  of_leaves_ = additions(leaves, here);
  of_roots_ = additions(leaves, everywhere);
}

int SumTree::most_arriving() const {
  // Additions that join all roots are one fewer than the roots are. Plans of thousands of ranks ask often.
  return static_cast<int>(of_roots_.size()) + 1 - roots_of_[static_cast<std::size_t>(ranks_)];
}

int SumTree::open_after(int count) const {
  return count_largest(leaves_, first_leaf(), first_leaf() + count);
}

}  // namespace mindpipe
