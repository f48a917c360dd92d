#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "layers/unit.h"
#include "optim/unit_optimizer.h"

namespace mindpipe {

/// Where the elements of one named piece of a parameter stand in a shard: `rows` rows of `columns` elements, row r of them from element
/// `first + r * columns` of the shard on; in the whole tensor, from (whole_row + r) * whole_columns + whole_column on.
struct PieceOfShard {
  std::int64_t rows = 0, columns = 0, first = 0;
  std::int64_t whole_row = 0, whole_column = 0, whole_columns = 0;
  std::int64_t real_rows = 0;  ///< of `rows`, those that are no padding
};
/// Part `part` of parameter `param`, in logical shard `shard` (of the whole group, not of this rank).
PieceOfShard piece_of(const Unit& unit, int param, int part, int logical_shard);

/// Initial values of elements [first, first + count) of a unit's flat order, on this rank, in f32; padding is zero. A function of seed and
/// names alone.
void initial_values(const Unit& unit, std::uint64_t seed, int threads, std::int64_t first, std::int64_t count, float* flat);

/// Sets a unit's values, and its masters with them, from f32 numbers of the host: those of its flat order from element `first` on.
void set_values(Backend& backend, Unit& unit, UnitOptimizer* optimizer, std::int64_t first, const Tensor& flat);

/// What is kept of each element: its value and the optimizer's slots, by name.
std::vector<std::string_view> state_slots(const Config& config);

}  // namespace mindpipe
