#pragma once
#include <optional>
#include <vector>

#include "core/sum_tree.h"

// Lists of additions and of ranges: a run carries them out, and the proof of its sums follows them.
namespace mindpipe {

/// The node that the tree over `leaves` makes of two sums, if it has such an addition.
std::optional<Subtree> node_of(int leaves, const Subtree& left, const Subtree& right);

/// What the newest leaf does in a binary counter of `open` open sums: it takes in the newest of them, down to
/// place `last`, each on its left. Then it moves to the open place `moves_to`, or stays where it is (-1).
struct CounterStep {
  int open = 0, last = 0;
  int moves_to = -1;
};
/// The step of leaf number `number` of a rank. Once the rank has counted all its leaves, the open places from
/// 0 on hold its roots, but for the last root, which stays where the newest leaf was.
CounterStep counter_step(const SumTree& tree, int number);

/// Adds up the uses of one table: the first takes in the others, one after the other.
std::vector<Addition> additions_in_order(int sums);

/// The piece that a rank owns in part `part` of a slab that is cut into ranks x parts pieces. A rank's pieces
/// of all parts lie side by side, and are its share.
constexpr int piece_of(int rank, int part, int parts) { return rank * parts + part; }
constexpr int owner_of_piece(int piece, int parts) { return piece / parts; }

}  // namespace mindpipe
