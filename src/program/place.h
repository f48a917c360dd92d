#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/memory.h"
#include "program/action.h"
#include "program/clock/simulate.h"
#include "program/outline.h"

namespace mindpipe {

/// Where the gradient of one use of a unit is added up when uses take turns in shared memory.
struct GradientPlace {
  int slab = -1;
  bool moves_out = false;  ///< this rank's part of the sum, when another use takes the slab
};

/// The memory that one rank's list needs: `arenas` arenas of `arena_bytes` for what forwards save, and the
/// boundary buffers that from_buffer and to_buffer number, each as large as the largest boundary it ever
/// holds.
struct RankMemory {
  int arenas = 0;
  std::int64_t arena_bytes = 0;
  std::vector<BoundaryBytes> buffers;
  std::vector<std::int64_t> slabs;  ///< bytes of each gradient slab; none unless gradients are sharded
  std::map<UnitUse, GradientPlace> gradients;
  std::array<std::int64_t, memory_classes.size()> bytes{};  ///< by class, as the outline gives them
  std::int64_t total() const;
};

struct Placement {
  std::vector<RankMemory> ranks;
};

/// Gives every tape an arena and everything that crosses a cut a buffer, and adds the waits that reuse
/// demands. Buffers form rings, one for each neighbour and direction on either side of a cut: `ring_depth`
/// deep, deeper only where the program would stand still or a training step take over half a percent longer.
/// Sharded gradients get slabs in which uses of units take turns, as few as the same bound allows.
Placement place(Program& program, const Outline& outline, const Network& network, int ring_depth = 2);

}  // namespace mindpipe
