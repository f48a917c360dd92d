#include "state/shard_map.h"

#include <algorithm>

namespace mindpipe {
namespace {

/// The rectangle of a whole tensor that one shard holds: its rows follow each other in the unit's flat order.
struct Rectangle {
  std::int64_t row, column, rows, columns, flat;
};

std::vector<Rectangle> rectangles_of(const Unit& unit, const ShardRange& shards, const StackedPiece& piece) {
  const ParamSpec& spec = unit.params()[piece.param];
  const std::int64_t columns = spec.split == Split::in ? spec.columns / shards.logical : spec.width();
  const auto rows_of = [&](const Piece& whole) {
    return spec.split == Split::out ? whole.rows / shards.logical : whole.rows;
  };
  std::int64_t elements_above = 0;
  for (int i = 0; i < piece.piece; ++i) elements_above += rows_of(spec.pieces[i]) * columns;

  const Piece& whole = spec.pieces[piece.piece];
  std::vector<Rectangle> held;
  for (int s = 0; s < unit.local_shards(piece.param); ++s) {
    const std::int64_t shard = shards.first + s;
    const std::int64_t row = spec.split == Split::out ? shard * rows_of(whole) : 0;
    const std::int64_t rows = std::min(rows_of(whole), whole.rows - whole.padding - row);
    if (rows <= 0) continue;
    const std::int64_t column = spec.split == Split::in ? shard * columns : 0;
    const std::int64_t flat = unit.flat_offset(piece.param, s) + elements_above;
    if (spec.columns > 0) held.push_back({piece.rows_above + row, column, rows, columns, flat});
    else held.push_back({0, piece.rows_above + row, 1, rows, flat});
  }
  return held;
}

/// The first i from 0 on with first + i * step >= bound.
std::int64_t steps_to(std::int64_t bound, std::int64_t first, std::int64_t step) {
  return bound <= first ? 0 : (bound - first + step - 1) / step;
}

/// Adds what a rectangle has among elements `within` of an order in which its element (i, j) is at
/// `at + i * row_step + j * step`.
void add_runs(std::vector<ElementRun>& runs, const Rectangle& held, std::int64_t at, std::int64_t row_step,
              std::int64_t step, Elements within) {
  const std::int64_t end = std::min(held.rows, steps_to(within.end, at, row_step));
  for (auto i = steps_to(within.first - (held.columns - 1) * step, at, row_step); i < end; ++i) {
    const std::int64_t row_at = at + i * row_step;
    const std::int64_t first = std::min(held.columns, steps_to(within.first, row_at, step));
    const std::int64_t count = std::min(held.columns, steps_to(within.end, row_at, step)) - first;
    if (count > 0)
      runs.push_back({held.row + i, held.column + first, held.flat + i * held.columns + first, count});
  }
}

}  // namespace

std::vector<ElementRun> runs_of(const Unit& unit, const StackedPiece& piece, Elements within) {
  std::vector<ElementRun> runs;
  for (const Rectangle& held : rectangles_of(unit, unit.shards(), piece))
    add_runs(runs, held, held.flat, held.columns, 1, within);
  return runs;
}

std::vector<ElementRun> stored_runs_of(const Unit& unit, const StackedPiece& piece, const WholeTensor& tensor,
                                       Elements within) {
  return stored_runs_of(unit, unit.shards(), piece, tensor, within);
}

std::vector<ElementRun> stored_runs_of(const Unit& unit, const ShardRange& shards, const StackedPiece& piece,
                                       const WholeTensor& tensor, Elements within) {
  std::vector<ElementRun> runs;
  for (Rectangle held : rectangles_of(unit, shards, piece)) {
    if (!tensor.transposed && held.columns == tensor.width()) {  // its rows follow each other there, too
      held.columns *= held.rows;
      held.rows = 1;
    }
    add_runs(runs, held, stored_at(tensor, held.row, held.column), tensor.transposed ? 1 : tensor.width(),
             stored_step(tensor), within);
  }
  return runs;
}

}  // namespace mindpipe
