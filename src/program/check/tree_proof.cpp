#include "program/check/tree_proof.h"

#include <fmt/core.h>

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/sum_lists.h"

namespace mindpipe {
namespace {

std::string text_of(const Subtree& sum) { return fmt::format("shards [{}, {})", sum.first, sum.last); }

std::string no_addition(int leaves, const Subtree& left, const Subtree& right) {
  return fmt::format("the tree over {} shards has no sum of {} and {}", leaves, text_of(left),
                     text_of(right));
}

/// Counts a rank's leaves, and appends the roots that it ends with.
std::string count(const SumTree& tree, int levels, std::vector<Subtree>& roots) {
  std::vector<Subtree> open;
  const int leaves = tree.ranks() * tree.leaves_here();
  for (int number = 0; number < tree.leaves_here(); ++number) {
    const int leaf = tree.first_leaf() + number;
    Subtree newest{leaf, leaf + 1};
    const CounterStep step = counter_step(tree, number);
    for (int place = step.open; place-- > step.last;) {
      if (place + 1 != static_cast<int>(open.size()))
        return fmt::format("shard {} takes in open sum {} of {}", leaf, place, open.size());
      const auto node = node_of(leaves, open[place], newest);
      if (!node) return no_addition(leaves, open[place], newest);
      newest = *node;
      open.pop_back();
    }
    const bool is_last = number + 1 == tree.leaves_here();
    if (step.moves_to != (is_last ? -1 : static_cast<int>(open.size())) || step.moves_to >= levels)
      return fmt::format("shard {} moves to place {} of {}, where {} are open", leaf, step.moves_to, levels,
                         open.size());
    open.push_back(newest);
  }
  if (open != tree.roots()) return fmt::format("shard {} is counted up to other roots", tree.first_leaf());
  roots.insert(roots.end(), open.begin(), open.end());
  return "";
}

/// The fault of a tree, which nobody has proved yet.
std::string fault_found(int leaves, int ranks) {
  const int levels = most_levels(leaves, ranks);
  std::vector<Subtree> sums;
  for (int rank = 0; rank < ranks; ++rank)
    if (std::string fault = count(SumTree(leaves, ranks, rank), levels, sums); !fault.empty()) return fault;
  const std::vector<Addition> all = SumTree(leaves, ranks).of_roots();
  for (const auto& [left, right] : all) {
    const auto node = node_of(leaves, sums[left], sums[right]);
    if (!node) return no_addition(leaves, sums[left], sums[right]);
    sums[left] = *node;
    sums[right] = {-1, -1};  // used up
  }
  return sums[0] == Subtree{0, leaves} ? "" : fmt::format("the sum ends as that of {}", text_of(sums[0]));
}

}  // namespace

std::string fault_of_tree(int leaves, int ranks) {
  static std::mutex lock;
  static std::set<std::pair<int, int>> proved;  // a search asks for the trees of thousands of ranks again
  const std::scoped_lock held(lock);
  if (proved.count({leaves, ranks}) > 0) return "";
  std::string fault = fault_found(leaves, ranks);
  if (fault.empty()) proved.emplace(leaves, ranks);
  return fault;
}

void require_tree(int leaves, int ranks) {
  const std::string fault = fault_of_tree(leaves, ranks);
  MP_CHECK(fault.empty(), "sums over {} shards on {} ranks: {}", leaves, ranks, fault);
}

}  // namespace mindpipe
