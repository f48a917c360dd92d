#pragma once
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// Where a micro-batch's tape of a chunk lies in the slab of all tapes, from its forward to its last
/// backward, and what a backward in halves puts off beside it, from the first half on.
struct TapeRoom {
  std::size_t tape = 0, tape_end = 0, waiting = 0, waiting_end = 0;
};

/// Where the segments of a swapped block lie, behind the rooms of all tapes and in the host's memory: so many
/// slots and places, each of the same size.
struct SegmentRoom {
  std::size_t bytes = 0;
  std::size_t device = 0, host = 0;  ///< where the first one begins
  int slots = 0, places = 0;
  std::size_t slot(int number) const { return device + number * bytes; }
  std::size_t place(int number) const { return host + number * bytes; }
};

/// The tapes of a rank's list in one slab: a room by chunk and micro-batch. Rooms that share bytes have
/// nothing at the same time.
struct TapeSlab {
  std::size_t bytes = 0;
  std::map<std::pair<int, int>, TapeRoom> rooms;
  std::map<int, SegmentRoom> segments;  ///< by swapped block
  std::size_t host_bytes = 0;           ///< bytes of the host's memory that segments take
};

/// Bytes of a micro-batch's rooms in a chunk.
struct TapeSizes {
  std::size_t tape = 0, waiting = 0;
};

/// Sizes of rooms in a chunk whose backward is whole, or in halves.
using SizesOfTapes = std::function<TapeSizes(int chunk, bool in_halves)>;

/// Places the tapes of a list: each arena (Action::tape) behind the others where all backwards are whole and
/// all tapes alike; else each room as low as it can lie, tapes first, or all as they come if that takes fewer
/// bytes.
TapeSlab place_tapes(const std::vector<Action>& list, const SizesOfTapes& sizes_of);

/// A pass of a list, as a slab knows it.
struct TapePass {
  ActionKind kind = ActionKind::forward;
  int chunk = 0, micro_batch = 0, arena = Action::none;
};

/// Bytes of the slab of a list's tapes, which are the same as of place_tapes. `enough`: bytes from which on
/// fewer are of no use, so that it may be said to take more of them. `most`: bytes from which on more are of
/// no use, so that it may be said to take fewer of them, but no fewer than these.
std::size_t bytes_of_tapes(const std::vector<TapePass>& passes, const SizesOfTapes& sizes_of,
                           std::size_t enough, std::size_t most = std::numeric_limits<std::size_t>::max());

/// Places the segments of a list's swapped blocks behind its tapes.
void add_segments(TapeSlab& slab, const std::vector<Action>& list,
                  const std::function<std::size_t(int block)>& bytes_of);

}  // namespace mindpipe
