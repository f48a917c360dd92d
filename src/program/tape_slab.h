#pragma once
#include <cstddef>
#include <functional>
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

/// Places the tapes of a list: each arena (Action::tape) behind the others where all backwards are whole and
/// all tapes alike; else each room as low as it can lie, tapes first, or all as they come if that takes fewer
/// bytes. `sizes_of`: of a chunk whose backward is whole, or in halves. `enough`: bytes from which on fewer
/// are of no use.
TapeSlab place_tapes(const std::vector<Action>& list,
                     const std::function<TapeSizes(int chunk, bool in_halves)>& sizes_of,
                     std::size_t enough = 0);

/// Places the segments of a list's swapped blocks behind its tapes.
void add_segments(TapeSlab& slab, const std::vector<Action>& list,
                  const std::function<std::size_t(int block)>& bytes_of);

}  // namespace mindpipe
