#pragma once
#include <cstddef>
#include <cstdint>

namespace mindpipe {

/// Rooms of a rank that trains a supernet: how many, and the bytes of each.
struct SubnetRooms {
  int slots = 0, slabs = 0, inputs = 0;
  std::size_t tape = 0;      ///< tape of a slot: what arrives with a forward, and what the forward saves
  std::size_t gradient = 0;  ///< gradient that arrives in a slot
  std::size_t slab = 0;
  std::size_t forwards = 0, backwards = 0;  ///< buffers of the rings to the next stage and to the one before
  std::int64_t most_tensors = 0;            ///< tensors of the units of one update
  int moves = 0;                            ///< buffers for units that travel, one for each channel
  std::size_t move = 0;                     ///< bytes of such a buffer
};

}  // namespace mindpipe
