#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace mindpipe {

/// The leaves [first, last) that one node of a tree of sums covers.
struct Subtree {
  int first = 0, last = 0;
  bool operator==(const Subtree&) const = default;
};

/// One addition in a list of sums: the sum of `left` and `right` takes the place of `left`.
struct Addition {
  int left = 0, right = 0;
  bool operator==(const Addition&) const = default;
};

// The one binary tree over `leaves` logical shards: neighbours first, an odd one carried up.
// docs/same-bits.md says why there is only one.

/// The largest subtrees that make up the leaves [first, last), in order: at most 2 log2(leaves).
std::vector<Subtree> largest_subtrees(int leaves, int first, int last);
/// The most sums that any rank hands on, where all ranks have equally many leaves, in order.
int most_roots(int leaves, int ranks);
/// The most sums that any rank keeps open beside the newest, while it adds its leaves one after the other.
int most_levels(int leaves, int ranks);
/// All additions that the tree has between `sums`, which lie side by side, each of one subtree: neighbours
/// first.
std::vector<Addition> additions(int leaves, std::span<const Subtree> sums);

/// A tree over `count` sums, walked from the first to the last: each sum goes on top of a stack, and the two
/// upper ones become one as often as is said here for it. Nothing where the additions leave several sums.
std::vector<std::uint8_t> joins_of(std::span<const Addition> tree, int count);

/// The tree over logical shards that are shared out among ranks, leaves / ranks to each. A rank adds up what
/// it can, and hands on its roots: the sums of the largest subtrees that it holds, one where its leaves are a
/// whole subtree. The tree goes on over the roots of all ranks, rank by rank.
class SumTree {
 public:
  explicit SumTree(int leaves = 1, int ranks = 1, int rank = 0);

  int ranks() const { return ranks_; }
  int leaves_here() const { return leaves_ / ranks_; }
  int first_leaf() const { return rank_ * leaves_here(); }
  int roots_of(int rank) const { return roots_of_[static_cast<std::size_t>(rank)]; }
  const std::vector<Subtree>& roots() const { return roots_; }              ///< this rank's roots
  int most_roots() const { return mindpipe::most_roots(leaves_, ranks_); }  ///< the most of any rank
  /// The most sums that arrive at a rank: the roots of all others.
  int most_arriving() const;

  /// Among this rank's leaves; a root takes the place of its first leaf.
  const std::vector<Addition>& of_leaves() const { return of_leaves_; }
  /// Among the roots of all ranks.
  const std::vector<Addition>& of_roots() const { return of_roots_; }

  /// How many sums are open once a rank has added its first `count` leaves, one after the other, each sum
  /// closed as soon as all of its leaves are there.
  int open_after(int count) const;
  int levels() const { return most_levels(leaves_, ranks_); }

 private:
  int leaves_, ranks_, rank_;
  std::vector<int> roots_of_;
  std::vector<Subtree> roots_;
  std::vector<Addition> of_leaves_, of_roots_;
};

}  // namespace mindpipe
