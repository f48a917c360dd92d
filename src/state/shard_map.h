#pragma once
#include <vector>

#include "state/whole_tensor.h"

// The one place that says where the elements of a unit's shards lie in whole tensors and in files.
namespace mindpipe {

/// Elements [first, end) of an order: a unit's flat order, or that of a tensor as it is stored.
struct Elements {
  std::int64_t first = 0, end = 0;
  std::int64_t count() const { return end - first; }
};

/// Elements that lie one after the other in a whole tensor, from (row, column) on, and in the unit's flat
/// order, from `flat` on. A vector is one row. Where the tensor is stored transposed they are of one row.
struct ElementRun {
  std::int64_t row = 0, column = 0, flat = 0, count = 0;
};

inline std::int64_t count_of(const std::vector<ElementRun>& runs) {
  std::int64_t count = 0;
  for (const ElementRun& run : runs) count += run.count;
  return count;
}

/// What elements `within` of a unit's flat order hold of a piece of the unit, row by row; padding is left
/// out.
std::vector<ElementRun> runs_of(const Unit& unit, const StackedPiece& piece, Elements within);
/// What the shards on this rank hold of a piece of `unit` among elements `within` of the tensor that the
/// piece stands in, as the tensor is stored.
std::vector<ElementRun> stored_runs_of(const Unit& unit, const StackedPiece& piece, const WholeTensor& tensor,
                                       Elements within);
/// What another rank of the tensor group, which has these shards, holds of a piece among such elements.
std::vector<ElementRun> stored_runs_of(const Unit& unit, const ShardRange& shards, const StackedPiece& piece,
                                       const WholeTensor& tensor, Elements within);

/// Where an element of a whole tensor is when the tensor is stored, counted in elements.
inline std::int64_t stored_at(const WholeTensor& tensor, std::int64_t row, std::int64_t column) {
  return tensor.transposed ? column * tensor.rows + row : row * tensor.width() + column;
}
/// How far apart neighbours in a row of a whole tensor are when the tensor is stored.
inline std::int64_t stored_step(const WholeTensor& tensor) { return tensor.transposed ? tensor.rows : 1; }

}  // namespace mindpipe
