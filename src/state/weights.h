#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "optim/unit_optimizer.h"
#include "state/staging_buffer.h"
#include "state/whole_tensor.h"

namespace mindpipe {

/// What a stretch of a unit's flat order has of one piece of a parameter, in one shard that lives here;
/// padding is left out.
struct Stretch {
  int param = 0, part = 0;
  PieceOfShard piece;
  std::int64_t first = 0, count = 0;  ///< elements of the piece, row by row
  std::int64_t before = 0;            ///< elements of the stretch ahead of them

  /// What it has of one row: `count` elements from (row, column) of the whole piece on, `before` of the
  /// stretch ahead of them.
  struct Row {
    std::int64_t row = 0, column = 0, count = 0, before = 0;
  };
  std::int64_t first_row() const { return first / piece.columns; }
  std::int64_t end_row() const { return (first + count + piece.columns - 1) / piece.columns; }
  Row row(std::int64_t row_of_shard) const;
};
/// What elements [first, first + count) of a unit's flat order hold, piece by piece.
std::vector<Stretch> stretches(const Unit& unit, std::int64_t first, std::int64_t count);

/// Initial values of elements [first, first + count) of a unit's flat order, on this rank, in f32; padding is
/// zero. A function of seed and names alone.
void initial_values(const Unit& unit, std::uint64_t seed, int threads, std::int64_t first, std::int64_t count,
                    float* flat);

/// Writes elements [first, first + count) of a unit's flat order, in f32.
using GiveValues = std::function<void(std::int64_t first, std::int64_t count, float* flat)>;
/// Sets a unit's values to what `give` says, and its masters with them, as much at a time as may pass; its
/// moments begin at zero.
void set_values_in_pieces(Backend& backend, Unit& unit, UnitOptimizer* optimizer, StagingBuffer& passage,
                          const GiveValues& give);

/// What is kept of each element: its value and the optimizer's slots, by name.
std::vector<std::string_view> state_slots(const Config& config);

}  // namespace mindpipe
