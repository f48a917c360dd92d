#include "core/sum_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "core/random.h"

namespace mindpipe {
namespace {

/// The definition: the left subtree is the largest power of two below the count.
int left_of(int count) {
  int left = 1;
  while (2 * left < count) left *= 2;
  return left;
}

/// All subtrees of the tree over [first, last), and of each the one that it is part of.
void each_subtree(Subtree node, Subtree parent, const std::function<void(Subtree, Subtree)>& see) {
  see(node, parent);
  const int count = node.last - node.first;
  if (count == 1) return;
  const int middle = node.first + left_of(count);
  each_subtree({node.first, middle}, node, see);
  each_subtree({middle, node.last}, node, see);
}

std::vector<Subtree> roots_by_definition(int leaves, int first, int last) {
  std::vector<Subtree> found;
  const auto inside = [&](Subtree node) { return node.first >= first && node.last <= last; };
  each_subtree({0, leaves}, {-1, leaves}, [&](Subtree node, Subtree parent) {
    if (inside(node) && !inside(parent)) found.push_back(node);
  });
  return found;
}

void for_each_share(const std::function<void(int leaves, int ranks)>& see) {
  for (int leaves = 1; leaves <= 64; ++leaves)
    for (int ranks = 1; ranks <= leaves; ++ranks)
      if (leaves % ranks == 0) see(leaves, ranks);
}

float leaf(int i) {
  const RandomStream stream{3, purpose_of("leaves"), 0, 0};
  return static_cast<float>(stream.normal(static_cast<std::uint64_t>(i)) * std::exp2(i % 9));
}

float tree_sum(int first, int count) {
  if (count == 1) return leaf(first);
  const int left = left_of(count);
  return tree_sum(first, left) + tree_sum(first + left, count - left);
}

void add(std::vector<float>& sums, const std::vector<Addition>& tree) {
  for (const Addition& addition : tree) sums[addition.left] += sums[addition.right];
}

TEST(SumTree, OverSixLeavesIsSharedAsOneWouldByHand) {
  const auto roots = [](int ranks, int rank) { return SumTree(6, ranks, rank).roots(); };
  using Roots = std::vector<Subtree>;
  EXPECT_EQ(roots(1, 0), (Roots{{0, 6}}));
  EXPECT_EQ(roots(2, 0), (Roots{{0, 2}, {2, 3}}));
  EXPECT_EQ(roots(2, 1), (Roots{{3, 4}, {4, 6}}));
  EXPECT_EQ(roots(3, 1), (Roots{{2, 4}}));
  const SumTree tree(6, 2, 1);
  EXPECT_EQ(tree.of_leaves(), (std::vector<Addition>{{1, 2}}));
  EXPECT_EQ(tree.of_roots(), (std::vector<Addition>{{1, 2}, {0, 1}, {0, 3}}));
  EXPECT_EQ(tree.most_roots(), 2);
  EXPECT_EQ(tree.most_arriving(), 2);
  EXPECT_EQ(tree.levels(), 2);
}

TEST(SumTree, ARankHandsOnTheLargestSubtreesThatItHolds) {
  for_each_share([](int leaves, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const SumTree tree(leaves, ranks, rank);
      const int first = tree.first_leaf(), last = first + tree.leaves_here();
      EXPECT_EQ(tree.roots(), roots_by_definition(leaves, first, last)) << rank << " of " << ranks;
      EXPECT_EQ(tree.roots_of(rank), static_cast<int>(tree.roots().size()));
      EXPECT_LE(tree.most_roots(), std::max(1.0, 2 * std::log2(leaves)));
      EXPECT_EQ(tree.open_after(tree.leaves_here()), tree.roots_of(rank));
      EXPECT_LT(tree.roots_of(rank), tree.levels() + 2);
    }
  });
}

TEST(SumTree, OfPowersOfTwoEveryRankHasOneRootAndTheBinaryCountersLevels) {
  for (int leaves = 1; leaves <= 64; leaves *= 2)
    for (int ranks = 1; ranks <= leaves; ranks *= 2) {
      const SumTree tree(leaves, ranks);
      EXPECT_EQ(tree.most_roots(), 1);
      EXPECT_EQ(tree.most_arriving(), ranks - 1);
      EXPECT_EQ(tree.levels(), std::countr_zero(static_cast<unsigned>(leaves / ranks)));
    }
}

TEST(SumTree, OverRanksHasTheBitsOfTheTreeOnOne) {
  for_each_share([](int leaves, int ranks) {
    std::vector<float> of_all;
    for (int rank = 0; rank < ranks; ++rank) {
      const SumTree tree(leaves, ranks, rank);
      std::vector<float> here;
      for (int i = 0; i < tree.leaves_here(); ++i) here.push_back(leaf(tree.first_leaf() + i));
      add(here, tree.of_leaves());
      for (const Subtree& root : tree.roots()) of_all.push_back(here[root.first - tree.first_leaf()]);
    }
    add(of_all, SumTree(leaves, ranks).of_roots());
    EXPECT_EQ(of_all[0], tree_sum(0, leaves)) << leaves << " leaves on " << ranks << " ranks";
  });
}

TEST(SumTree, LeavesThatComeOneAfterTheOtherCloseTheirSumsWithinTheLevels) {
  for_each_share([](int leaves, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const SumTree tree(leaves, ranks, rank);
      std::vector<float> open;
      for (int i = 0; i < tree.leaves_here(); ++i) {
        float newest = leaf(tree.first_leaf() + i);
        ASSERT_LE(static_cast<int>(open.size()), tree.levels());
        for (int sum = tree.open_after(i); sum-- > tree.open_after(i + 1) - 1;) {
          newest = open.back() + newest;
          open.pop_back();
        }
        open.push_back(newest);
      }
      ASSERT_EQ(open.size(), tree.roots().size());
      for (std::size_t i = 0; i < open.size(); ++i) {
        const Subtree root = tree.roots()[i];
        EXPECT_EQ(open[i], tree_sum(root.first, root.last - root.first));
      }
    }
  });
}

TEST(SumTree, AWalkWithAStackAddsWhatTheAdditionsAdd) {
  int forests = 0;
  for_each_share([&](int leaves, int ranks) {
    for (const int rank : {0, ranks - 1}) {
      const SumTree tree(leaves, ranks, rank);
      for (const auto& [additions, count] :
           {std::pair(tree.of_roots(), static_cast<int>(tree.of_roots().size()) + 1),
            {tree.of_leaves(), tree.leaves_here()}}) {
        std::vector<float> sums;
        for (int i = 0; i < count; ++i) sums.push_back(leaf(i));
        const std::vector<std::uint8_t> joins = joins_of(additions, count);
        if (additions.size() + 1 != sums.size()) {
          EXPECT_TRUE(joins.empty()) << "they leave several sums";
          ++forests;
          continue;
        }
        std::vector<float> open;
        for (int i = 0; i < count; ++i) {
          open.push_back(sums[i]);
          for (int join = 0; join < joins[i]; ++join) {
            const float right = open.back();
            open.pop_back();
            open.back() += right;
          }
        }
        add(sums, additions);
        ASSERT_EQ(open.size(), 1u) << leaves << " leaves, " << ranks << " ranks";
        ASSERT_EQ(open[0], sums[0]) << leaves << " leaves, " << ranks << " ranks";
      }
    }
  });
  EXPECT_GT(forests, 10);
}

}  // namespace
}  // namespace mindpipe
