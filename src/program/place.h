#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/memory.h"
#include "program/action.h"
#include "program/outline.h"
#include "program/schedules/gradient_turns.h"
#include "program/tape_slab.h"

namespace mindpipe {

/// Sizes of a chunk as the outline gives them.
TapeSizes sizes_of_rooms(const Outline& outline, int chunk);

/// The memory that one rank's list needs: `arenas` tapes of up to `arena_bytes` for what forwards save, and
/// the boundary buffers that from_buffer and to_buffer number, each as large as the largest boundary it ever
/// holds.
struct RankMemory {
  int arenas = 0;
  std::int64_t arena_bytes = 0;
  std::vector<BoundaryBytes> buffers;
  std::vector<std::int64_t> slabs;  ///< bytes of each gradient slab; none unless gradients are sharded
  std::map<UnitUse, GradientPlace> gradients;
  std::array<std::int64_t, memory_classes.size()> bytes{};  ///< by class, as the outline gives them
  std::int64_t on_host = 0;                                 ///< bytes of segments in the host's memory
  std::int64_t total() const;
};

struct Placement {
  std::vector<RankMemory> ranks;
};

/// The memory of a rank whose list of a step was written, with its gradients in slabs (null: none).
RankMemory memory_of(const std::vector<Action>& list, const Outline& outline, int rank,
                     const GradientTurns* turns);

}  // namespace mindpipe
