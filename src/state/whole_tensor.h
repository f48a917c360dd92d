#pragma once
#include <string>
#include <vector>

#include "models/model.h"

namespace mindpipe {

/// Where the elements of one named piece of a parameter stand in a shard: `rows` rows of `columns` elements,
/// row r of them from element `first + r * columns` of the shard on; in the whole piece, from (whole_row + r)
/// * whole_columns + whole_column on.
struct PieceOfShard {
  std::int64_t rows = 0, columns = 0, first = 0;
  std::int64_t whole_row = 0, whole_column = 0, whole_columns = 0;
  std::int64_t real_rows = 0;  ///< of `rows`, those that are no padding
};
/// Part `part` of parameter `param`, in logical shard `shard` (of the whole group, not of this rank).
PieceOfShard piece_of(const Unit& unit, int param, int part, int logical_shard);
/// Which logical shard a local one is; the only one where the parameter is not split.
int logical_shard(const Unit& unit, int param, int local_shard);

/// A tensor of a model as others see it, whoever has which of its elements: named pieces of parameters,
/// stacked by rows.
struct WholeTensor {
  struct Source {
    int unit = 0, param = 0, part = 0;
    std::int64_t above = 0;  ///< rows of those before it
  };
  std::string name;
  std::vector<Source> sources;
  std::int64_t rows = 0, columns = 0;  ///< as the model has it; no columns: a vector
  bool transposed = false;             ///< it is stored as [columns, rows]

  std::int64_t width() const { return columns == 0 ? 1 : columns; }
  std::int64_t count() const { return rows * width(); }
  std::vector<std::int64_t> shape() const;
};
/// Every piece by itself, in model order.
std::vector<WholeTensor> pieces_of(const Model& model);
/// As files have them, by name.
std::vector<WholeTensor> tensors_for_files(const Model& model);

/// The elements that one shard has of a whole tensor, line by line as it is stored. Line l of them, of
/// `lines`, begins at element `first + l * line` of the whole tensor, and at `flat + l * flat_line` of the
/// unit's flat order; it has `length` elements, one after the other in the whole tensor, `flat_step` apart in
/// the unit.
struct StoredLines {
  std::int64_t lines = 0, length = 0, first = 0, line = 0, flat = 0, flat_line = 0, flat_step = 0;
};
StoredLines stored_lines(const WholeTensor& tensor, const WholeTensor::Source& source, const Unit& unit,
                         int local_shard);

}  // namespace mindpipe
